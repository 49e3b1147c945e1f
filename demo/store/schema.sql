-- The store's world. Money is integer minor units with its currency beside it.
-- Times are RFC 3339 in UTC.

CREATE TABLE product (
    sku         TEXT PRIMARY KEY,
    name        TEXT NOT NULL,
    category    TEXT NOT NULL,
    price_minor INTEGER NOT NULL CHECK (price_minor > 0),
    currency    TEXT NOT NULL,
    stock       INTEGER NOT NULL CHECK (stock >= 0)
) STRICT;

CREATE TABLE customer (
    id              TEXT PRIMARY KEY,
    name            TEXT NOT NULL,
    email           TEXT NOT NULL,
    address         TEXT NOT NULL,           -- JSON
    retention_until TEXT NOT NULL,           -- the law wants invoices kept until then
    version         INTEGER NOT NULL DEFAULT 1,
    deleted_at      TEXT
) STRICT;

CREATE TABLE purchase (
    id             TEXT PRIMARY KEY,
    customer       TEXT NOT NULL REFERENCES customer,
    placed_at      TEXT NOT NULL,
    status         TEXT NOT NULL CHECK (status IN ('paid', 'shipped', 'delivered')),
    carrier        TEXT NOT NULL DEFAULT '',
    carrier_status TEXT NOT NULL DEFAULT '',
    delivered_at   TEXT,
    address        TEXT NOT NULL,            -- JSON
    total_minor    INTEGER NOT NULL,
    currency       TEXT NOT NULL,
    payment        TEXT NOT NULL DEFAULT '', -- how it was paid, and is paid back
    version        INTEGER NOT NULL DEFAULT 1
) STRICT;

CREATE TABLE line (
    purchase    TEXT NOT NULL REFERENCES purchase,
    sku         TEXT NOT NULL REFERENCES product,
    quantity    INTEGER NOT NULL CHECK (quantity > 0),
    price_minor INTEGER NOT NULL,
    PRIMARY KEY (purchase, sku)
) STRICT;

-- One row for each idempotency key ever received. It is written in the transaction
-- of the effect, so there is never one without the other.
CREATE TABLE call (
    key      TEXT PRIMARY KEY,
    tool     TEXT NOT NULL,
    digest   TEXT NOT NULL,
    answer   TEXT NOT NULL DEFAULT '',       -- JSON; empty only inside a transaction
    received INTEGER NOT NULL DEFAULT 1,     -- how often this key has come
    first_at TEXT NOT NULL,
    last_at  TEXT NOT NULL
) STRICT;

-- The second lock on "exactly once": an effect names its key, and a key has one.
CREATE TABLE refund (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    key          TEXT NOT NULL UNIQUE REFERENCES call,
    purchase     TEXT NOT NULL REFERENCES purchase,
    amount_minor INTEGER NOT NULL CHECK (amount_minor > 0),
    currency     TEXT NOT NULL,
    reason       TEXT NOT NULL,
    at           TEXT NOT NULL
) STRICT;

CREATE TRIGGER refund_within_total BEFORE INSERT ON refund
WHEN NEW.amount_minor
    + (SELECT COALESCE(SUM(amount_minor), 0) FROM refund
       WHERE purchase = NEW.purchase)
    > (SELECT total_minor FROM purchase WHERE id = NEW.purchase)
BEGIN
    SELECT RAISE(ABORT, 'refund beyond the total of the order');
END;

CREATE TRIGGER refund_stays BEFORE UPDATE ON refund
BEGIN
    SELECT RAISE(ABORT, 'the ledger is never changed');
END;

CREATE TRIGGER refund_is_kept BEFORE DELETE ON refund
BEGIN
    SELECT RAISE(ABORT, 'the ledger is never changed');
END;

CREATE TABLE mail (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    key     TEXT NOT NULL UNIQUE REFERENCES call,
    sent_to TEXT NOT NULL,                   -- JSON list, as are cc and bcc
    cc      TEXT NOT NULL,
    bcc     TEXT NOT NULL,
    subject TEXT NOT NULL,
    body    TEXT NOT NULL,
    at      TEXT NOT NULL
) STRICT;

CREATE TABLE tag (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    key      TEXT NOT NULL UNIQUE REFERENCES call,
    purchase TEXT NOT NULL REFERENCES purchase,
    label    TEXT NOT NULL,
    at       TEXT NOT NULL
) STRICT;

CREATE TABLE draft (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    key      TEXT NOT NULL UNIQUE REFERENCES call,
    purchase TEXT NOT NULL,                  -- may name an order that is not there
    body     TEXT NOT NULL,
    at       TEXT NOT NULL
) STRICT;

CREATE TABLE return_label (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    key      TEXT NOT NULL UNIQUE REFERENCES call,
    purchase TEXT NOT NULL REFERENCES purchase,
    carrier  TEXT NOT NULL,
    tracking TEXT NOT NULL,
    at       TEXT NOT NULL,
    cost_minor INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE redirection (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    key      TEXT NOT NULL UNIQUE REFERENCES call,
    purchase TEXT NOT NULL REFERENCES purchase,
    was      TEXT NOT NULL,                  -- JSON
    became   TEXT NOT NULL,                  -- JSON
    at       TEXT NOT NULL
) STRICT;

CREATE TABLE deletion (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    key      TEXT NOT NULL UNIQUE REFERENCES call,
    customer TEXT NOT NULL UNIQUE REFERENCES customer,
    at       TEXT NOT NULL
) STRICT;

-- What customers wrote; the public inbox that Riley reads.
CREATE TABLE message (
    id          TEXT PRIMARY KEY,
    received_at TEXT NOT NULL,
    sender      TEXT NOT NULL,
    name        TEXT NOT NULL,
    subject     TEXT NOT NULL,
    body        TEXT NOT NULL
) STRICT;

CREATE INDEX refund_by_purchase ON refund (purchase);
CREATE INDEX tag_by_purchase ON tag (purchase);
CREATE INDEX purchase_by_customer ON purchase (customer);
