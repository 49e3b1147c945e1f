// How a call is sent, how its answer is read, and what is sent again.
//
// Retries are safe because Counterseal answers a repeated call from the stored result: a
// proposal and a redeem by their idempotency key, an outcome by its fence.

import { ROUTES } from "./api.ts";
import type { JsonValue, Operations } from "./api.ts";
import { ApiError, CountersealError, InvalidAnswer, Unreachable, isObject, parseProblem } from "./errors.ts";
import { decodeJson, encodeJson } from "./json.ts";

export const LONGEST_HOLD = 60;
const READ_SECONDS = 15;
const UPLOAD_SECONDS = 60; // a file is drawn before the gate answers
const RETRIED_CONFLICTS: readonly string[] = ["in_progress", "conflict"];

/**
 * How often and how long to retry; all times in seconds. The waits double from `first`
 * to `longest`, less a random part of up to a quarter, so that many agents do not return
 * together. A Retry-After is obeyed exactly, unless it is longer than `patience`: then
 * the refusal is thrown at once.
 */
export interface Backoff {
  readonly attempts: number;
  readonly first: number;
  readonly longest: number;
  readonly patience: number;
}

const BACKOFF: Backoff = { attempts: 7, first: 0.25, longest: 15, patience: 90 };

/** `fetch` and `sleep` (in seconds) can be replaced, for proxies or a private CA. */
export interface ConnectionOptions {
  readonly backoff?: Partial<Backoff>;
  readonly fetch?: typeof globalThis.fetch;
  readonly sleep?: (seconds: number) => Promise<void>;
}

/** An operation of the document, by its id. */
export type OperationId = keyof Operations;

/** What one call sends. `hold`: for how many seconds Counterseal may keep it. */
export type CallInput<Id extends OperationId> = {
  readonly query?: Operations[Id]["query"];
  readonly idempotencyKey?: string;
  readonly hold?: number;
} & (keyof Operations[Id]["path"] extends never
  ? { readonly path?: undefined }
  : string extends keyof Operations[Id]["path"]
    ? { readonly path?: undefined }
    : { readonly path: Operations[Id]["path"] }) &
  (Operations[Id]["body"] extends undefined
    ? { readonly body?: undefined }
    : { readonly body: Operations[Id]["body"] });

interface HttpCall {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array<ArrayBuffer> | null;
  readonly readSeconds: number;
}

/** Where the gate is, who calls it, and how patiently. */
export class Connection {
  readonly url: string;
  readonly #key: string;
  readonly #backoff: Backoff;
  readonly #fetch: typeof globalThis.fetch;
  readonly #sleep: (seconds: number) => Promise<void>;

  constructor(url: string, key: string, options: ConnectionOptions = {}) {
    this.url = url.replace(/\/+$/, "");
    this.#key = key;
    this.#backoff = { ...BACKOFF, ...options.backoff };
    this.#fetch = options.fetch ?? globalThis.fetch;
    this.#sleep = options.sleep ?? sleepSeconds;
  }

  /**
   * Call an operation, and return its answer after as many attempts as it takes. Throws
   * ApiError for a refusal, Unreachable when no usable answer came, TypeError for a body
   * that is not strict JSON.
   */
  async call<Id extends OperationId>(
    id: Id,
    input: CallInput<Id>,
  ): Promise<Operations[Id]["answer"]> {
    const [method, path] = ROUTES[id];
    const hold = Math.ceil(Math.min(input.hold ?? 0, LONGEST_HOLD));
    const query = { ...input.query, ...(hold > 0 ? { wait: String(hold) } : {}) };
    const headers: Record<string, string> = { Authorization: `Bearer ${this.#key}` };
    if (input.body !== undefined) headers["Content-Type"] = "application/json";
    if (input.idempotencyKey) headers["Idempotency-Key"] = input.idempotencyKey;
    const answer = await this.#send({
      method,
      url: this.url + fillPath(path, input.path ?? {}) + formatQuery(query),
      headers,
      body: input.body === undefined ? null : encodeJson(input.body),
      readSeconds: READ_SECONDS + hold,
    });
    return answer as unknown as Operations[Id]["answer"];
  }

  /** Call an operation whose body is a file. */
  async upload<Id extends OperationId>(
    id: Id,
    body: Uint8Array<ArrayBuffer>,
    mediaType: string,
  ): Promise<Operations[Id]["answer"]> {
    const [method, path] = ROUTES[id];
    const answer = await this.#send({
      method,
      url: this.url + path,
      headers: { Authorization: `Bearer ${this.#key}`, "Content-Type": mediaType },
      body,
      readSeconds: UPLOAD_SECONDS,
    });
    return answer as unknown as Operations[Id]["answer"];
  }

  /** The JSON at an address that needs no key, such as that of the public keys. */
  async readPublic(path: string): Promise<JsonValue> {
    const call = { method: "GET", url: this.url + path, headers: {}, body: null };
    return this.#send({ ...call, readSeconds: READ_SECONDS });
  }

  /** Pause for this many seconds. */
  async pause(seconds: number): Promise<void> {
    await this.#sleep(seconds);
  }

  async #send(call: HttpCall): Promise<JsonValue> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#sendOnce(call);
      } catch (error) {
        await this.#sleep(this.#chooseDelay(attempt, error));
      }
    }
  }

  async #sendOnce(call: HttpCall): Promise<JsonValue> {
    let response: Response;
    let text: string;
    try {
      response = await this.#fetch(call.url, {
        method: call.method,
        headers: call.headers,
        body: call.body,
        redirect: "manual",
        signal: AbortSignal.timeout(call.readSeconds * 1000),
      });
      text = await response.text();
    } catch (error) {
      const cause = error instanceof Error ? (error.cause ?? error) : error;
      throw new Unreachable(`${call.method} ${call.url}: ${String(cause)}`, { cause: error });
    }
    if (!response.ok) throw buildApiError(response, text);
    try {
      return text ? decodeJson(text) : null;
    } catch (error) {
      throw new Unreachable(`${call.url}: the response is not JSON`, { cause: error });
    }
  }

  /** The pause before the next attempt. Throws the error when there is none. */
  #chooseDelay(attempt: number, error: unknown): number {
    if (!(error instanceof CountersealError)) throw error;
    if (error instanceof ApiError && !isRetryable(error)) throw error;
    const asked = error instanceof ApiError ? error.retryAfter : null;
    const { attempts, first, longest, patience } = this.#backoff;
    const doubled = Math.min(longest, first * 2 ** (attempt - 1));
    const delay = asked ?? doubled * (1 - Math.random() / 4);
    if (attempt >= attempts || delay > patience) throw error;
    return delay;
  }
}

/** Whether the same call may succeed a moment later. */
function isRetryable(error: ApiError): boolean {
  if (error.status === 409) return RETRIED_CONFLICTS.includes(error.code);
  return error.status === 429 || error.status >= 500;
}

/** The error of a response, even if its body is not problem details. */
function buildApiError(response: Response, text: string): ApiError {
  let body: JsonValue | undefined;
  try {
    body = decodeJson(text);
  } catch {
    body = undefined;
  }
  const problem = parseProblem(body);
  const detail = problem.detail || response.statusText || "no detail";
  const seconds = Number.parseFloat(response.headers.get("retry-after") ?? "");
  const retryAfter = Number.isNaN(seconds) ? null : Math.max(0, seconds);
  return new ApiError(response.status, { ...problem, detail }, retryAfter);
}

function fillPath(path: string, values: object): string {
  const given = new Map(Object.entries(values));
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(String(given.get(name))),
  );
}

/** The query with its question mark; empty parameters are left out. */
function formatQuery(values: object): string {
  const given = Object.entries(values)
    .filter(([, value]) => value !== undefined && value !== "")
    .map(([name, value]) => [name, String(value)]);
  return given.length ? `?${new URLSearchParams(given).toString()}` : "";
}

async function sleepSeconds(seconds: number): Promise<void> {
  await new Promise((resolve) => {
    setTimeout(resolve, seconds * 1000);
  });
}

/** Throw InvalidAnswer unless the answer is an object with these texts. */
export function checkAnswer(answer: unknown, expected: string, texts: readonly string[]): void {
  if (!isObject(answer)) throw new InvalidAnswer(expected, "it is no object");
  const missing = texts.filter((name) => typeof answer[name] !== "string");
  if (missing.length) throw new InvalidAnswer(expected, `${missing.join(", ")} missing`);
}
