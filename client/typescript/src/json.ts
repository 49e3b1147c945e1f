// JSON without losses: numbers that a float cannot hold, and the canonical form.

import type { JsonValue } from "./api.ts";

/** Where a value stands: `args.items.0.amount`. */
function joinPath(path: string, name: string): string {
  return path ? `${path}.${name}` : name;
}

/**
 * Encode strict JSON. Throws TypeError with the path of what JSON, or a receiver of it,
 * could not hold: NaN, an integer beyond 2^53, a lone surrogate, a function, a date.
 */
export function encodeJson(value: unknown): string {
  checkJson(value, "", checkDigits);
  return JSON.stringify(value);
}

type CheckNumber = (value: number, path: string) => void;

function checkJson(value: unknown, path: string, checkNumber: CheckNumber): void {
  switch (typeof value) {
    case "boolean":
      return;
    case "string":
      checkText(value, path);
      return;
    case "number":
      checkNumber(value, path);
      return;
    case "object":
      checkObject(value, path, checkNumber);
      return;
    default:
      throw new TypeError(`${path || "the value"}: ${typeof value} is not JSON`);
  }
}

function checkText(value: string, path: string): void {
  if (!value.isWellFormed()) {
    throw new TypeError(`${path || "the value"}: a lone surrogate is not JSON`);
  }
}

function checkFinite(value: number, path: string): void {
  if (!Number.isFinite(value)) {
    throw new TypeError(`${path || "the value"}: ${value} is not JSON`);
  }
}

/** Refuse an integer that a float may have rounded before it came here. */
function checkDigits(value: number, path: string): void {
  checkFinite(value, path);
  // From 1e21 on, JavaScript writes an exponent, so a receiver reads a float.
  if (Number.isInteger(value) && !Number.isSafeInteger(value) && Math.abs(value) < 1e21) {
    throw new TypeError(
      `${path || "the value"}: ${value} is beyond 2^53, where floats have gaps;` +
        " pass a string",
    );
  }
}

function checkObject(value: object | null, path: string, checkNumber: CheckNumber): void {
  if (value === null) return;
  if (Array.isArray(value)) {
    value.forEach((one, index) => checkJson(one, joinPath(path, String(index)), checkNumber));
    return;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    throw new TypeError(`${path || "the value"}: it is no plain object`);
  }
  for (const [name, one] of Object.entries(value)) {
    checkText(name, joinPath(path, name));
    // As JSON.stringify does: an undefined property is one that is not there.
    if (one !== undefined) checkJson(one, joinPath(path, name), checkNumber);
  }
}

/**
 * Decode JSON. A number whose digits a float cannot hold, such as an amount of 20 digits,
 * becomes its text. Throws SyntaxError.
 */
export function decodeJson(text: string): JsonValue {
  // The third argument, the source of a value, is not yet known to every version of the
  // language's types.
  const revive = (_: string, value: unknown, context?: { source?: string }) =>
    typeof value === "number" && context?.source !== undefined
      ? keepDigits(value, context.source)
      : value;
  return JSON.parse(text, revive as (this: unknown, name: string, value: unknown) => unknown);
}

function keepDigits(value: number, source: string): number | string {
  return Number.isFinite(value) && spellNumber(source) === spellNumber(String(value))
    ? value
    : source;
}

/** A number's sign, digits and exponent, so that equal numbers are spelled alike. */
function spellNumber(text: string): string {
  const parts = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(text);
  if (parts === null) return text;
  const [, sign, whole = "", fraction = "", exponent = "0"] = parts;
  const digits = (whole + fraction).replace(/^0+/, "");
  const significant = digits.replace(/0+$/, "");
  if (significant === "") return "0";
  const shift = Number(exponent) - fraction.length + digits.length - significant.length;
  return `${sign}${significant}e${shift}`;
}

/**
 * The canonical form of a value (RFC 8785): properties in the order of their UTF-16
 * units, numbers as ECMAScript writes them. Throws TypeError for what is not JSON.
 */
export function canonicalize(value: unknown): string {
  checkJson(value, "", checkFinite);
  return writeCanonical(value);
}

function writeCanonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(writeCanonical).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value)
    .filter(([, one]) => one !== undefined)
    .sort(([first], [second]) => (first < second ? -1 : 1))
    .map(([name, one]) => `${JSON.stringify(name)}:${writeCanonical(one)}`);
  return `{${members.join(",")}}`;
}

/** The SHA-256 of a text in UTF-8, in hexadecimal digits. */
export async function hashText(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The bytes of a base64 text, with either alphabet. Throws TypeError for any other. */
export function decodeBase64(text: string): Uint8Array<ArrayBuffer> {
  const plain = text.replaceAll("-", "+").replaceAll("_", "/");
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(plain)) throw new TypeError("not base64");
  let decoded: string;
  try {
    decoded = atob(plain);
  } catch {
    throw new TypeError("not base64");
  }
  return Uint8Array.from(decoded, (character) => character.charCodeAt(0));
}
