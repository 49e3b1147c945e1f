// Does what the tests ask for, one JSON line a request, with the client's own functions.

import { appendFileSync } from "node:fs";
import { createInterface } from "node:readline";

import {
  ApiError,
  ApprovalPending,
  Gate,
  InvalidGrant,
  NothingHappened,
  ToolError,
  buildCallKey,
  gatedTool,
  verifyGrant,
  verifyWebhook,
} from "../../../client/typescript/src/index.ts";
import { checkThread, findDecided, formatResult, isWaiting } from "../../../client/typescript/src/adapters/calls.ts";
import type { Schema } from "../../../client/typescript/src/index.ts";
import { canonicalize, decodeJson } from "../../../client/typescript/src/json.ts";

type Given = Record<string, any>;

interface Letter {
  readonly to: string;
  readonly text: string;
  readonly copies?: number;
}

/** A schema by hand, as Standard Schema has it: texts, and a default if one is given. */
function buildSchema(copies?: number): Schema<Letter> {
  const validate = (value: unknown) => {
    const { to, text } = value as Letter;
    const wrong = Object.entries({ to, text }).filter(([, one]) => typeof one !== "string");
    if (wrong.length) {
      return { issues: wrong.map(([name]) => ({ path: [name], message: "must be a text" })) };
    }
    return { value: copies === undefined ? { to, text } : { to, text, copies } };
  };
  return { "~standard": { version: 1, vendor: "tests", validate } };
}

/** The tool `write`. Its effect is a line in a file, with the key of the claim. */
function buildWriter(gate: Gate, given: Given) {
  return gatedTool(gate, {
    name: given["tool"] ?? "write",
    description: "Write a letter.",
    input: buildSchema(given["copies"]),
    audience: given["audience"],
    execute: (letter, claim) => {
      if (given["fails"] === "certainly") throw new NothingHappened("No paper.", "paper");
      if (given["fails"]) throw new Error("The line broke.");
      const row = { ...letter, key: claim.idempotency_key };
      appendFileSync(given["file"], `${JSON.stringify(row)}\n`);
      if (given["dies"]) process.kill(process.pid, "SIGKILL");
      return { sent: letter.to };
    },
  });
}

const pauses: number[] = [];

function buildGate(given: Given): Gate {
  if (!given["backoff"]) return new Gate(given["url"], given["key"]);
  const sleep = async (seconds: number) => void pauses.push(seconds);
  return new Gate(given["url"], given["key"], { backoff: given["backoff"], sleep });
}

const actions: Record<string, (given: Given) => unknown> = {
  canonicalize: ({ text }) => canonicalize(JSON.parse(text)),
  decode: ({ text }) => decodeJson(text),
  buildKey: ({ thread, callId }) => buildCallKey(thread, callId),
  verifyGrant: ({ token, jwks, expected, now }) =>
    verifyGrant(token, jwks, { ...expected, now: new Date(now * 1000) }),
  verifyWebhook: ({ headers, body, secret }) =>
    verifyWebhook(headers, Uint8Array.from(Buffer.from(body, "base64")), secret),
  // A method of Gate by its name. `special` names arguments that JSON cannot carry.
  gate: async (given) => {
    pauses.length = 0;
    const gate = buildGate(given) as unknown as Record<string, (...args: any[]) => unknown>;
    const args = given["special"] ? [{ ...given["args"][0], args: SPECIAL[given["special"]] }] : given["args"];
    return gate[given["method"]]!(...args);
  },
  sendFile: (given) =>
    buildGate(given).sendFile(new TextEncoder().encode(given["text"]), given["file"]),
  pauses: () => pauses,
  perform: (given) => buildWriter(buildGate(given), given).perform(given["args"], given["options"]),
  isWaiting: ({ value }) => isWaiting(value),
  findDecided: (given) => findDecided(buildGate(given), given["waiting"], 0),
  formatResult: ({ result }) => formatResult(result),
  checkThread: ({ name }) => checkThread(name, "the memory thread"),
  verifyClaim: async (given) => {
    const gate = buildGate(given);
    const claim = await gate.redeem(given["token"]);
    return gate.verifyGrant(claim, given["audience"]);
  },
};

const SPECIAL: Record<string, unknown> = {
  nan: { n: Number.NaN },
  infinity: { n: Infinity },
  surrogate: { n: "\ud800" },
  beyond: { n: 2 ** 53 },
  date: { n: new Date(0) },
  bigint: { n: 1n },
};

function describeError(error: unknown): Given {
  if (!(error instanceof Error)) return { name: "unknown", message: String(error) };
  const more: Given = {};
  if (error instanceof ApiError) {
    const { status, code, errors, retryAfter, nextStep } = error;
    Object.assign(more, { status, code, errors, retryAfter, nextStep });
  }
  if (error instanceof InvalidGrant) Object.assign(more, { code: error.code, answer: error.answer });
  if (error instanceof ToolError) more["status"] = error.proposal.status;
  if (error instanceof ApprovalPending) more["pending"] = true;
  return { name: error.name, message: error.message, ...more };
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, action, given } = JSON.parse(line) as Given;
  let answer: Given;
  try {
    answer = { value: (await actions[action]!(given)) ?? null };
  } catch (error) {
    answer = { error: describeError(error) };
  }
  process.stdout.write(`${JSON.stringify({ id, ...answer })}\n`);
}
