// A model's tool call with its names at the gate, and what a model reads of its result.
// Plain data: nothing here imports a framework.

import { isObject } from "../errors.ts";
import type { Details, Gate } from "../gate.ts";
import { isReady } from "../proposals.ts";
import type { Proposal } from "../proposals.ts";
import type { GatedTool, ToolResult } from "../tools.ts";

/** A tool behind the gate, whatever it takes and returns. */
export type AnyTool = GatedTool<any, any>;

/**
 * The details of the proposal of a call. It must return the same ones each time it is
 * asked about the same call: another process asks again.
 */
export type DescribeCall = (tool: string, args: unknown, callId: string) => Details;

/**
 * What an adapter and its framework can do. `supportsEdit`: an edited call runs with the
 * edited arguments. `partialOk`: one of several parallel calls can go on before the others
 * are decided. `bindsRequest`: the framework itself refuses an answer to another request.
 */
export interface AdapterFlags {
  readonly framework: string;
  readonly minimum: string;
  readonly supportsEdit: boolean;
  readonly partialOk: boolean;
  readonly bindsRequest: boolean;
}

/** The details by default: none. */
export const describeCall: DescribeCall = () => ({});

const WAITING_TYPE = "counterseal_approval";

/** What waits for people, and where they decide. */
export interface WaitingCall {
  readonly type: typeof WAITING_TYPE;
  readonly proposal: string;
  readonly tool: string;
  readonly tool_call_id: string;
  readonly url: string;
}

/**
 * A message of the model has two calls with one id. None of them was performed: an answer
 * could not tell them apart.
 */
export class DuplicateCallId extends TypeError {
  override readonly name = "DuplicateCallId";

  constructor(callId: string) {
    super(
      `Two tool calls of one message have the id ${JSON.stringify(callId)}. Neither was` +
        " performed. Give each call an id of its own.",
    );
  }
}

const THREAD_NAME = /^[A-Za-z0-9._:-]{1,128}$/;

/**
 * The name of the run. Throws TypeError for one that the gate does not take. `source`
 * says where it came from, in the framework's words.
 */
export function checkThread(name: unknown, source: string): string {
  if (typeof name !== "string" || !THREAD_NAME.test(name)) {
    throw new TypeError(
      `${source} is ${JSON.stringify(name)}: it must be 1 to 128 letters, digits, dots,` +
        " colons, dashes or underscores, because it names the run at the gate. Choose" +
        " such a name.",
    );
  }
  return name;
}

/** The proposal of a call that waits, as the framework keeps and shows it. */
export function describeWaiting(proposal: Proposal, callId: string): WaitingCall {
  return {
    type: WAITING_TYPE,
    proposal: proposal.id,
    tool: proposal.tool,
    tool_call_id: callId,
    url: proposal.request?.url ?? "",
  };
}

/** Whether a value of a stored run comes from `describeWaiting`. */
export function isWaiting(value: unknown): value is WaitingCall {
  return isObject(value) && value["type"] === WAITING_TYPE;
}

/**
 * The proposal of a call that waits, once people have decided it; null while they have
 * not, after at most `waitSeconds`.
 */
export async function findDecided(
  gate: Gate,
  waiting: WaitingCall,
  waitSeconds: number,
): Promise<Proposal | null> {
  const proposal = waitSeconds
    ? await gate.wait(waiting.proposal, waitSeconds)
    : await gate.get(waiting.proposal);
  return isReady(proposal) ? proposal : null;
}

/**
 * The result for the model, with a notice if a reviewer changed the call: the model's own
 * message keeps the arguments that it wrote.
 */
export function formatResult(result: ToolResult<unknown>): string {
  const { value, args, edited } = result;
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "null");
  return edited
    ? `A reviewer changed this call. Performed instead: ${JSON.stringify(args)}\n${text}`
    : text;
}
