// Vercel AI SDK: tools whose calls wait for people at the gate.
//
//     const gated = gateTools([sendNote], { thread: "order_78291" });
//     let { responseMessages } = await generateText({ model, messages, ...gated });
//     // keep messages and responseMessages; the process may end
//     const answered = await answerApprovals(messages, gated); // later, in any process
//     if (answered) await generateText({ model, messages: answered, ...gated });
//
// An approval in the messages only wakes the tool: it asks the gate for its own proposal
// and redeems the grant right before the effect. Messages may come from a client, which
// can write both halves of an approval into them.

import { asSchema, jsonSchema } from "ai";
import type {
  FlexibleSchema,
  ModelMessage,
  Tool,
  ToolApprovalResponse,
  ToolApprovalStatus,
} from "ai";

import { InvalidArguments } from "../errors.ts";
import { isReady } from "../proposals.ts";
import type { Proposal } from "../proposals.ts";
import { ToolError, readRefusal } from "../tool-errors.ts";
import { checkThread, describeCall, formatResult } from "./calls.ts";
import type { AdapterFlags, AnyTool, DescribeCall } from "./calls.ts";

export const FLAGS: AdapterFlags = {
  framework: "ai",
  minimum: "7.0.173",
  supportsEdit: true,
  partialOk: false,
  bindsRequest: false,
};

/** The name of the run, and the details of its proposals. */
export interface GateToolsOptions {
  readonly thread: string;
  readonly describe?: DescribeCall;
}

/** What the gate decides about a call before the SDK runs it. */
type ApproveCall = (
  input: unknown,
  options: { readonly toolCallId: string },
) => Promise<ToolApprovalStatus>;

/**
 * Settings for `generateText`, `streamText` and `ToolLoopAgent`: the tools, and who is
 * asked about their calls.
 */
export interface GatedTools {
  readonly tools: Record<string, Tool<unknown, string>>;
  readonly toolApproval: Record<string, ApproveCall>;
}

/**
 * Approval requests of other tools have no answer, and the SDK needs all of them at once.
 * Nothing was answered.
 */
export class UnansweredApprovals extends TypeError {
  override readonly name = "UnansweredApprovals";

  constructor(names: readonly string[]) {
    super(
      `Approval requests of ${names.join(", ")} have no answer. Add your answers as the` +
        " last message before you call answerApprovals.",
    );
  }
}

/** The gate's view of one tool in one run. */
class CallGuard {
  readonly tool: AnyTool;
  readonly #thread: string;
  readonly #describe: DescribeCall;

  constructor(tool: AnyTool, thread: string, describe: DescribeCall) {
    this.tool = tool;
    this.#thread = thread;
    this.#describe = describe;
  }

  /** The state of the call's proposal; a text for arguments that do not fit. */
  async propose(input: unknown, callId: string): Promise<Proposal | string> {
    try {
      return await this.tool.propose(input, this.#name(input, callId));
    } catch (error) {
      if (error instanceof InvalidArguments) return error.message;
      throw error;
    }
  }

  /** The result for the model, or why there is none. */
  async perform(input: unknown, callId: string): Promise<string> {
    try {
      const options = { ...this.#name(input, callId), waitSeconds: 0 };
      return formatResult(await this.tool.perform(input, options));
    } catch (error) {
      if (error instanceof InvalidArguments || error instanceof ToolError) {
        return error.message;
      }
      throw error;
    }
  }

  #name(input: unknown, callId: string) {
    const details = this.#describe(this.tool.name, input, callId);
    return { thread: this.#thread, callId, details };
  }
}

const guards = new WeakMap<GatedTools, ReadonlyMap<string, CallGuard>>();

/**
 * Build the settings for one run. A call is proposed when the model has made it: if
 * people must decide, the SDK stops with an approval request; if the policy needs nobody,
 * the tool runs at once; if it is refused, the model gets the reason.
 */
export function gateTools(tools: readonly AnyTool[], options: GateToolsOptions): GatedTools {
  const thread = checkThread(options.thread, "thread");
  const describe = options.describe ?? describeCall;
  const made = new Map(tools.map((tool) => [tool.name, new CallGuard(tool, thread, describe)]));
  const gated: GatedTools = {
    tools: Object.fromEntries([...made].map(([name, guard]) => [name, buildTool(guard)])),
    toolApproval: Object.fromEntries(
      [...made].map(([name, guard]) => [
        name,
        (input, { toolCallId }) => approveCall(guard, input, toolCallId),
      ]),
    ),
  };
  guards.set(gated, made);
  return gated;
}

function buildTool(guard: CallGuard): Tool<unknown, string> {
  const { description, input } = guard.tool;
  return {
    description,
    // Only the description of the arguments: the tool checks them itself, and the SDK
    // would otherwise compare what it converted with what a stored message kept.
    inputSchema: jsonSchema<unknown>(
      () => asSchema(input as FlexibleSchema<unknown>).jsonSchema,
    ),
    execute: (args, { toolCallId }) => guard.perform(args, toolCallId),
  };
}

async function approveCall(
  guard: CallGuard,
  input: unknown,
  callId: string,
): Promise<ToolApprovalStatus> {
  const proposal = await guard.propose(input, callId);
  if (typeof proposal === "string") return { type: "denied", reason: proposal };
  if (isReady(proposal)) {
    const reason = readRefusal(proposal);
    return reason ? { type: "denied", reason } : "not-applicable";
  }
  // The gate performs it already, or will in a moment: nobody is asked.
  if (proposal.status !== "pending") return "not-applicable";
  return { type: "user-approval", reason: `People decide at ${proposal.request?.url ?? "the gate"}` };
}

/**
 * The messages with an answer to each approval request in them, for the next call of the
 * SDK; null when something is still undecided, or nothing waits.
 *
 * Any process may call this, at any time and as often as it likes. It waits for at most
 * `waitSeconds` for each call. Throws UnansweredApprovals for requests of other tools.
 */
export async function answerApprovals(
  messages: readonly ModelMessage[],
  gated: GatedTools,
  options: { readonly waitSeconds?: number } = {},
): Promise<ModelMessage[] | null> {
  const made = guards.get(gated);
  if (made === undefined) throw new TypeError("gated must come from gateTools");
  const open = listOpenRequests(messages);
  const others = open.filter(({ toolName }) => !made.has(toolName));
  if (others.length) throw new UnansweredApprovals(others.map((one) => one.toolName));
  const content: ToolApprovalResponse[] = [];
  for (const { approvalId, toolName, toolCallId, input } of open) {
    const guard = made.get(toolName)!;
    let proposal = await guard.propose(input, toolCallId);
    if (typeof proposal !== "string" && !isReady(proposal) && options.waitSeconds) {
      proposal = await guard.tool.gate.wait(proposal.id, options.waitSeconds);
    }
    const refusal = readDecision(proposal);
    if (refusal === null) return null;
    const approved = refusal === "";
    const reason = approved ? {} : { reason: refusal };
    content.push({ type: "tool-approval-response", approvalId, approved, ...reason });
  }
  return content.length ? [...messages, { role: "tool", content }] : null;
}

/** Why the call has no effect, "" if it may have one, null while nobody has decided. */
function readDecision(proposal: Proposal | string): string | null {
  if (typeof proposal === "string") return proposal;
  return isReady(proposal) ? readRefusal(proposal) : null;
}

interface OpenRequest {
  readonly approvalId: string;
  readonly toolCallId: string;
  readonly toolName: string;
  readonly input: unknown;
}

/** The approval requests that no later message answers, with their calls. */
function listOpenRequests(messages: readonly ModelMessage[]): OpenRequest[] {
  const calls = new Map<string, { toolName: string; input: unknown }>();
  const open = new Map<string, OpenRequest>();
  for (const { content } of messages) {
    if (typeof content === "string") continue;
    for (const part of content) {
      if (part.type === "tool-call") calls.set(part.toolCallId, part);
      if (part.type === "tool-approval-response") open.delete(part.approvalId);
      if (part.type === "tool-approval-request" && !part.isAutomatic) {
        const { approvalId, toolCallId } = part;
        const { toolName = "an unknown tool", input } = calls.get(toolCallId) ?? {};
        open.set(approvalId, { approvalId, toolCallId, toolName, input });
      }
    }
  }
  return [...open.values()];
}
