// What goes wrong between the client and Counterseal. Each error says what happened and
// what to do next; `tool-errors.ts` has those of a tool's call.

import type { JsonObject, JsonValue, QuestionOut } from "./api.ts";

/** What a caller does about each code of the API. */
export const NEXT_STEPS: Readonly<Record<string, string>> = {
  bad_key:
    "Pass the key that `counterseal agents register` printed, or ask the agent's owner for" +
    " a new one.",
  tool_not_allowed:
    "Ask an administrator to run `counterseal agents change AGENT" +
    " --by ADMINISTRATOR --add-tool TOOL`, and" +
    " check that the key has the scope `propose`.",
  agent_stopped: "Stop proposing. A person must lift the stop first.",
  not_found: "Check the id, and that it was made with this agent's key.",
  in_progress: "Send the same call again, with the same key.",
  conflict: "Send the same call again, with the same key.",
  grant_spent:
    "Do not perform the effect: another call has the claim. Read the proposal to see what" +
    " became of it.",
  stale_fence: "Do not repeat the effect. Read the proposal to see its state.",
  grant_expired: "Propose the action again, as a new call.",
  tool_changed: "Read the tool with `tools()` and propose the action again.",
  precondition: "Read the current state, then propose the action again.",
  invalid_args: "Correct the fields above and send the call again.",
  invalid: "Correct the fields above and send the call again.",
  key_reused:
    "Give another action another key. To repeat a call, send exactly the same arguments" +
    " and details.",
  key_missing: "Send an idempotency key.",
  rationale: "Pass `rationale`: one or two sentences that say why.",
  too_little_time: "Propose earlier, or with a longer `expires_in`.",
  too_large: "Shorten the arguments, the evidence or the checkpoint.",
  too_many: "Wait for `retryAfter` seconds, then send the call again.",
  restored: "Wait: two people must confirm the restore first.",
  server: "Send the same call again with the same key, or call `get`.",
};

/** An invalid field of the input, and why. */
export interface FieldError {
  readonly path: string;
  readonly message: string;
}

/** Base of the errors that this client throws. `nextStep` is one sentence. */
export class CountersealError extends Error {
  override readonly name: string = "CountersealError";
  readonly nextStep: string;

  constructor(text: string, nextStep = "", options?: ErrorOptions) {
    super(nextStep ? `${text} ${nextStep}` : text, options);
    this.nextStep = nextStep;
  }
}

/**
 * A question that ended, or still waits, without an answer: `question.status` is declined,
 * expired, withdrawn or open, and `question.note` is why a person declined.
 */
export class QuestionEnded extends CountersealError {
  override readonly name: string = "QuestionEnded";
  readonly question: QuestionOut;

  constructor(question: QuestionOut) {
    const note = question.note ? ` They wrote: "${question.note}"` : "";
    const waits = question.status === "open";
    super(
      waits ? `Nobody has answered yet: ${question.url}` : `The question was ${question.status}.${note}`,
      waits ? "Ask again with the same key to go on waiting." : "",
    );
    this.question = question;
  }
}

/**
 * No usable response arrived after all retries. Counterseal may have stored the proposal:
 * propose it again with the same idempotency key to get the stored response.
 */
export class Unreachable extends CountersealError {
  override readonly name = "Unreachable";

  constructor(text: string, options?: ErrorOptions) {
    const step = "Send the call again with the same key: it may have been stored.";
    super(`${text}.`, step, options);
  }
}

/**
 * The response is JSON, but not what this client expects: the address may belong to
 * another service, or to a release of Counterseal that this client does not know.
 */
export class InvalidAnswer extends CountersealError {
  override readonly name = "InvalidAnswer";

  constructor(expected: string, missing: string) {
    const step = "Check the address of the gate and the release of this client.";
    super(`The answer is not a ${expected}: ${missing}.`, step);
  }
}

/**
 * The arguments of a call do not fit the tool. Nothing was proposed, or, after an edit by
 * a reviewer, nothing was performed.
 */
export class InvalidArguments extends CountersealError {
  override readonly name = "InvalidArguments";
  readonly tool: string;
  readonly errors: readonly FieldError[];

  constructor(tool: string, errors: readonly FieldError[]) {
    const text = `The arguments of ${tool} do not fit: ${formatErrors(errors)}.`;
    super(text, "Correct them and call the tool again.");
    this.tool = tool;
    this.errors = errors;
  }
}

/**
 * Counterseal refused the call, with problem details (RFC 9457). `code` is for programs,
 * `detail` for people, `errors` lists the invalid fields, `retryAfter` is the number of
 * seconds to wait, `facts` are the problem's other members.
 */
export class ApiError extends CountersealError {
  override readonly name = "ApiError";
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  readonly errors: readonly FieldError[];
  readonly retryAfter: number | null;
  readonly facts: JsonObject;

  constructor(status: number, problem: ProblemDetails, retryAfter: number | null = null) {
    const { code, detail, errors, facts } = problem;
    const fields = errors.length ? ` (${formatErrors(errors)})` : "";
    super(`${status} ${code}: ${detail}${fields}`, NEXT_STEPS[code] ?? "");
    this.status = status;
    this.code = code;
    this.detail = detail;
    this.errors = errors;
    this.retryAfter = retryAfter;
    this.facts = facts;
  }
}

/** The body of a refusal, as far as it can be read. */
export interface ProblemDetails {
  readonly code: string;
  readonly detail: string;
  readonly errors: readonly FieldError[];
  readonly facts: JsonObject;
}

const KNOWN_MEMBERS = new Set(["type", "title", "status", "code", "detail", "errors"]);

/** Read problem details from decoded JSON; a page of a proxy has none. */
export function parseProblem(body: JsonValue | undefined): ProblemDetails {
  const found = isObject(body) ? body : {};
  const rows = Array.isArray(found["errors"]) ? found["errors"].filter(isObject) : [];
  return {
    code: String(found["code"] || "server"),
    detail: String(found["detail"] || ""),
    errors: rows.map((row) => ({
      path: String(row["path"] ?? ""),
      message: String(row["message"] ?? ""),
    })),
    facts: Object.fromEntries(
      Object.entries(found).filter(([name]) => !KNOWN_MEMBERS.has(name)),
    ),
  };
}

/** Whether a value of JSON is an object. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** All faults in one part of a sentence: `args.amount: must be a string; ...`. */
export function formatErrors(errors: readonly FieldError[]): string {
  return errors
    .map(({ path, message }) => (path ? `${path}: ${message}` : message))
    .join("; ");
}
