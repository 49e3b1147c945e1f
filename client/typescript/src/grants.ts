// For a tool's service: verify a grant by itself, without asking the gate. Fetch
// `/.well-known/jwks.json` of the gate once, keep it for some minutes, and fetch it anew
// when `verifyGrant` says `unknown_key`.

import type { JsonObject } from "./api.ts";
import { CountersealError, isObject } from "./errors.ts";
import { canonicalize, decodeBase64, decodeJson, hashText } from "./json.ts";

const ALGORITHM = "EdDSA";
const TYPE = "counterseal-grant+jwt";

/** Seconds that two clocks may differ. */
const LEEWAY = 30;

const TEXTS = [
  "iss",
  "aud",
  "jti",
  "proposal",
  "action_hash",
  "tool",
  "agent",
  "thread",
  "idempotency_key",
  "execution",
] as const;
const NUMBERS = [
  "iat",
  "nbf",
  "exp",
  "revision",
  "tool_version",
  "policy_version",
] as const;

/** Why a grant is refused. */
export type GrantFault =
  | "malformed"
  | "unknown_key"
  | "forged"
  | "wrong_issuer"
  | "wrong_audience"
  | "not_yet"
  | "expired"
  | "not_redeemed"
  | "other_tool"
  | "other_action";

/**
 * The token is not a valid grant for this action. Do nothing. `answer` is the response
 * for Counterseal. It concerns this call only: an earlier call under the same key may have
 * succeeded.
 */
export class InvalidGrant extends CountersealError {
  override readonly name = "InvalidGrant";
  readonly code: GrantFault;

  constructor(code: GrantFault, detail: string) {
    super(`${code}: ${detail}`);
    this.code = code;
  }

  get answer(): JsonObject {
    return { status: "failed", error: { code: `grant_${this.code}` } };
  }
}

/** What the grant says, as the gate signed it. */
export type GrantClaims = Readonly<Record<(typeof TEXTS)[number], string>> &
  Readonly<Record<(typeof NUMBERS)[number], number>> & {
    readonly target: JsonObject;
    readonly fence?: number;
  };

/**
 * Permission for one exact action, once. Store `id` until `rememberUntil`, when the grant
 * and its leeway have expired, and answer a repeated grant with the first result.
 * `claims.fence` grows with every attempt at the same execution;
 * `claims.idempotency_key` stays.
 */
export interface VerifiedGrant {
  readonly id: string;
  readonly expiresAt: Date;
  readonly rememberUntil: Date;
  readonly claims: GrantClaims;
}

/** What a service expects of a grant. */
export interface ExpectedGrant {
  /** The service's name in the policy: `audience` of the tool, else its URL's origin. */
  readonly audience: string;
  /** The tool that this entry point performs, so that another one's grant is refused. */
  readonly tool: string;
  /** Counterseal's own URL. */
  readonly issuer?: string;
  /** The arguments that you are about to use. */
  readonly args: JsonObject;
  readonly preconditions?: JsonObject;
  readonly leewaySeconds?: number;
  readonly now?: Date;
  /** A grant that no agent has redeemed is refused unless this is false. */
  readonly redeemed?: boolean;
}

/**
 * Verify a token for this service at this time, and return its grant. Takes Ed25519
 * signatures and nothing else. Throws InvalidGrant.
 */
export async function verifyGrant(
  token: string,
  jwks: JsonObject,
  expected: ExpectedGrant,
): Promise<VerifiedGrant> {
  const claims = await readSignedClaims(token, jwks);
  checkPlace(claims, expected);
  const leeway = expected.leewaySeconds ?? LEEWAY;
  checkTime(claims, leeway, (expected.now?.getTime() ?? Date.now()) / 1000);
  if ((expected.redeemed ?? true) && !claims.fence) {
    throw new InvalidGrant("not_redeemed", "the agent must redeem it first");
  }
  const asked = await hashAction(claims, expected.args, expected.preconditions ?? {});
  if (asked !== claims.action_hash) {
    throw new InvalidGrant("other_action", "the grant is for other arguments");
  }
  return {
    id: claims.jti,
    expiresAt: new Date(claims.exp * 1000),
    rememberUntil: new Date((claims.exp + leeway) * 1000),
    claims,
  };
}

/**
 * The hash of an action (RFC 8785), for who proposed it by these claims. Throws
 * InvalidGrant when the parts are not JSON.
 */
export async function hashAction(
  claims: Pick<GrantClaims, "tool" | "tool_version" | "agent" | "thread">,
  args: JsonObject,
  preconditions: JsonObject,
): Promise<string> {
  const { tool, tool_version, agent, thread } = claims;
  const action = { tool, tool_version, agent, thread, args, preconditions };
  try {
    return `sha256:${await hashText(canonicalize(action))}`;
  } catch (error) {
    if (!(error instanceof TypeError || error instanceof RangeError)) throw error;
    throw new InvalidGrant("other_action", "the arguments are not JSON");
  }
}

async function readSignedClaims(token: string, jwks: JsonObject): Promise<GrantClaims> {
  const [head = "", body = "", signature = "", ...more] = token.split(".");
  const header = decodePart(head);
  if (more.length || header["typ"] !== TYPE || header["alg"] !== ALGORITHM) {
    throw new InvalidGrant("malformed", "this is not the token of a grant");
  }
  if ("crit" in header) {
    throw new InvalidGrant("malformed", "it asks for an extension");
  }
  const key = await importKey(jwks, header["kid"]);
  const signed = new TextEncoder().encode(`${head}.${body}`);
  let given: Uint8Array<ArrayBuffer>;
  try {
    given = decodeBase64(signature);
  } catch {
    throw new InvalidGrant("malformed", "the signature is not base64");
  }
  if (!(await crypto.subtle.verify("Ed25519", key, given, signed))) {
    throw new InvalidGrant("forged", "the signature is not Counterseal's");
  }
  return checkTypes(decodePart(body));
}

function decodePart(part: string): JsonObject {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(decodeBase64(part));
    const found = decodeJson(text);
    if (isObject(found)) return found;
  } catch (error) {
    if (!(error instanceof TypeError || error instanceof SyntaxError)) throw error;
  }
  throw new InvalidGrant("malformed", "a part of it is no object of JSON");
}

/**
 * The key of that name. Only Ed25519 ever is one: a set with others in it opens no way to
 * another algorithm.
 */
async function importKey(jwks: JsonObject, kid: unknown): Promise<CryptoKey> {
  const keys = Array.isArray(jwks["keys"]) ? jwks["keys"].filter(isObject) : [];
  const found = keys.find((jwk) => kid && jwk["kid"] === kid && jwk["crv"] === "Ed25519");
  if (found === undefined) {
    throw new InvalidGrant("unknown_key", "fetch Counterseal's keys again");
  }
  const jwk = { kty: "OKP", crv: "Ed25519", x: String(found["x"]) };
  try {
    return await crypto.subtle.importKey("jwk", jwk, "Ed25519", false, ["verify"]);
  } catch {
    throw new InvalidGrant("malformed", "the key of that name is no public key");
  }
}

function checkTypes(claims: JsonObject): GrantClaims {
  const texts = TEXTS.every((name) => typeof claims[name] === "string");
  const numbers = NUMBERS.every((name) => Number.isSafeInteger(claims[name]));
  const fence = claims["fence"] === undefined || Number.isSafeInteger(claims["fence"]);
  if (!texts || !numbers || !fence || !isObject(claims["target"])) {
    throw new InvalidGrant("malformed", "a claim is missing or has the wrong type");
  }
  return claims as unknown as GrantClaims;
}

function checkPlace(claims: GrantClaims, expected: ExpectedGrant): void {
  if (claims.aud !== expected.audience) {
    throw new InvalidGrant("wrong_audience", "the grant is for another service");
  }
  if (expected.issuer && claims.iss !== expected.issuer) {
    throw new InvalidGrant("wrong_issuer", "the grant is from another issuer");
  }
  if (claims.tool !== expected.tool) {
    throw new InvalidGrant("other_tool", "the grant is for another tool");
  }
}

function checkTime(claims: GrantClaims, leeway: number, now: number): void {
  if (now < claims.nbf - leeway) {
    throw new InvalidGrant("not_yet", "the grant is not valid yet");
  }
  if (now >= claims.exp + leeway) {
    throw new InvalidGrant("expired", "the grant has expired");
  }
}
