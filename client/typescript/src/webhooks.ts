// Verify a webhook of Counterseal: Standard Webhooks, with Web Crypto alone.
//
// Pass the body as the bytes that arrived. A body that was parsed and serialized again
// has another signature.

import type { WebhookEventData, WebhookEventOut } from "./api.ts";
import { CountersealError, isObject } from "./errors.ts";
import { decodeBase64, decodeJson } from "./json.ts";

const PREFIX = "whsec_";

/** Seconds that two clocks may differ. An older event is refused as a replay. */
const TOLERANCE = 5 * 60;

/** This is not a current webhook of Counterseal. Do not act on it. */
export class NotVerified extends CountersealError {
  override readonly name = "NotVerified";
}

/**
 * One event. `id` is the same for every delivery attempt: store it with your work.
 * `data.outcome` is the id to acknowledge, null while there is nothing to act on.
 */
export interface WebhookEvent extends WebhookEventOut {
  readonly id: string;
}

/** Headers as a request of `fetch` or of Node has them. */
export type WebhookHeaders =
  | Headers
  | Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * Return the event of a body with a valid signature and time. Throws NotVerified.
 * `now` is for tests.
 */
export async function verifyWebhook(
  headers: WebhookHeaders,
  body: Uint8Array<ArrayBuffer> | string,
  secret: string,
  now: Date = new Date(),
): Promise<WebhookEvent> {
  const given = new Headers(
    Object.entries(headers instanceof Headers ? Object.fromEntries(headers) : headers).flatMap(
      ([name, value]) => (value === undefined ? [] : [[name, String(value)]]),
    ) as [string, string][],
  );
  const [id, at, signatures] = ["webhook-id", "webhook-timestamp", "webhook-signature"].map(
    (name) => {
      const value = given.get(name);
      if (value === null) throw new NotVerified(`The header ${name} is missing.`);
      return value;
    },
  ) as [string, string, string];
  checkTime(at, now);
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  const signed = joinBytes(new TextEncoder().encode(`${id}.${at}.`), bytes);
  const key = await importSecret(secret);
  if (!(await hasSignature(key, signed, signatures))) {
    throw new NotVerified("No signature matches.");
  }
  return readEvent(id, bytes);
}

function checkTime(at: string, now: Date): void {
  if (!/^\d{1,12}$/.test(at)) throw new NotVerified("The timestamp is invalid.");
  if (Math.abs(now.getTime() / 1000 - Number(at)) > TOLERANCE) {
    throw new NotVerified("The event is too old or from the future.");
  }
}

async function importSecret(secret: string): Promise<CryptoKey> {
  let bytes: Uint8Array<ArrayBuffer>;
  try {
    bytes = decodeBase64(secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret);
  } catch {
    bytes = new Uint8Array();
  }
  if (!bytes.length) throw new NotVerified("The secret must be whsec_ and base64.");
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  return crypto.subtle.importKey("raw", bytes, algorithm, false, ["verify"]);
}

/** Whether one of the signatures is right. Only version `v1` can be checked. */
async function hasSignature(
  key: CryptoKey,
  signed: Uint8Array<ArrayBuffer>,
  signatures: string,
): Promise<boolean> {
  for (const one of signatures.split(" ")) {
    const [version, text = ""] = one.split(",", 2);
    if (version !== "v1") continue;
    try {
      // `verify` compares in constant time.
      if (await crypto.subtle.verify("HMAC", key, decodeBase64(text), signed)) return true;
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
    }
  }
  return false;
}

function joinBytes(first: Uint8Array, second: Uint8Array): Uint8Array<ArrayBuffer> {
  const joined = new Uint8Array(first.length + second.length);
  joined.set(first);
  joined.set(second, first.length);
  return joined;
}

function readEvent(id: string, bytes: Uint8Array): WebhookEvent {
  try {
    const said = decodeJson(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    if (isObject(said) && isObject(said["data"])) {
      const { type, timestamp, data } = said;
      const texts = [type, timestamp, data["proposal"], data["thread"], data["status"]];
      if (texts.every((value) => typeof value === "string")) {
        return {
          id,
          type: type as WebhookEventOut["type"],
          timestamp: String(timestamp),
          data: data as unknown as WebhookEventData,
        };
      }
    }
  } catch (error) {
    if (!(error instanceof TypeError || error instanceof SyntaxError)) throw error;
  }
  throw new NotVerified("The body is signed, but is not an event of Counterseal.");
}
