// The names of one tool call at the gate. They are functions of the run and of the call
// alone, so another process makes the same ones after a crash. The Python client makes
// the same, too.

import { hashText } from "./json.ts";

/**
 * The idempotency key of one call of a tool in one thread: letters only, so that it looks
 * like no personal data, whatever the call id is.
 */
export async function buildCallKey(thread: string, callId: string): Promise<string> {
  const digest = await hashText(`[${quoteText(thread)}, ${quoteText(callId)}]`);
  const letters = Array.from(digest.slice(0, 40), (digit) =>
    String.fromCharCode(97 + Number.parseInt(digit, 16)),
  );
  return `call-${letters.join("")}`;
}

/** A text as JSON of ASCII characters alone. */
function quoteText(text: string): string {
  return JSON.stringify(text).replaceAll(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
