// Mastra: tools whose calls suspend the run until people have decided.
//
//     const tools = { send_note: buildTool(sendNote) };
//     const agent = new Agent({ tools, outputProcessors: [callIdGuard], ... });
//     await agent.generate("Tell Ann.", { memory: { thread: "order_78291", resource } });
//     // the process may end
//     await resumeRun(agent, gate, { thread: "order_78291" }); // later, in any process
//
// Resuming only wakes the tool: it asks the gate for its own proposal and redeems the
// grant right before the effect. It reads nothing of the data that Mastra resumes with,
// which any code beside it can send.

import type { Agent } from "@mastra/core/agent";
import type { OutputProcessor, ProcessOutputStreamArgs } from "@mastra/core/processors";
import { RequestContext } from "@mastra/core/request-context";
import { standardSchemaToJSONSchema, toStandardSchema } from "@mastra/core/schema";
import type { PublicSchema } from "@mastra/core/schema";
import { createTool } from "@mastra/core/tools";
import type { Tool, ToolExecutionContext } from "@mastra/core/tools";

import { InvalidArguments } from "../errors.ts";
import type { Gate } from "../gate.ts";
import { ApprovalPending, ToolError } from "../tool-errors.ts";
import {
  DuplicateCallId,
  checkThread,
  describeCall,
  describeWaiting,
  findDecided,
  formatResult,
  isWaiting,
} from "./calls.ts";
import type { AdapterFlags, AnyTool, DescribeCall, WaitingCall } from "./calls.ts";

export const FLAGS: AdapterFlags = {
  framework: "@mastra/core",
  minimum: "1.71.0",
  supportsEdit: true,
  partialOk: true,
  bindsRequest: false,
};

/**
 * Under this key of the request context stands the name of the run at the gate. Without
 * it, the memory thread names the run; a nested agent has a memory thread of its own.
 */
export const THREAD_KEY = "countersealThread";

/** How a tool's calls are proposed. */
export interface BuildToolOptions {
  readonly describe?: DescribeCall;
}

/** What became of a run: what still waits, and the model's last words when nothing does. */
export interface ResumedRun {
  readonly waiting: readonly WaitingCall[];
  readonly text: string;
}

/** Name the run at the gate, for an agent that has nested ones. */
export function buildRequestContext(thread: string): RequestContext {
  return new RequestContext([[THREAD_KEY, checkThread(thread, "thread")]]);
}

/** Build a tool of Mastra. The call id at the gate is the model's. */
export function buildTool(tool: AnyTool, options: BuildToolOptions = {}): Tool {
  const describe = options.describe ?? describeCall;
  const execute = async (input: unknown, context: ToolExecutionContext): Promise<unknown> => {
    const { agent, requestContext } = context;
    if (!agent) throw new TypeError(`${tool.name} waits for people: call it from an agent.`);
    const name = requestContext?.get(THREAD_KEY) ?? agent.threadId;
    const thread = checkThread(name, "the memory thread");
    const callId = agent.toolCallId;
    if (requestContext && refusedIds.get(requestContext)?.has(callId)) {
      throw new DuplicateCallId(callId);
    }
    const details = describe(tool.name, input, callId);
    try {
      const names = { thread, callId, details };
      return formatResult(await tool.perform(input, { ...names, waitSeconds: 0 }));
    } catch (error) {
      if (error instanceof ApprovalPending) {
        return agent.suspend(describeWaiting(error.proposal, callId));
      }
      if (error instanceof InvalidArguments || error instanceof ToolError) return error.message;
      throw error;
    }
  };
  return createTool({
    id: tool.name,
    description: tool.description,
    // Only the description of the arguments: the tool converts them itself, after the
    // approval.
    inputSchema: standardSchemaToJSONSchema(toStandardSchema(tool.input as PublicSchema), {
      io: "input",
    }),
    execute,
  }) as unknown as Tool;
}

/** The ids that stand twice in a message, by the context of their run. */
const refusedIds = new WeakMap<RequestContext, Set<string>>();

/**
 * An output processor that refuses a message of the model in which two calls have one id:
 * neither is performed. Mastra alone drops the second one without a word.
 */
export const callIdGuard: OutputProcessor = {
  id: "counterseal-call-ids",
  // After the stream, Mastra shows the first of the two calls alone.
  processOutputStream: async ({
    part,
    streamParts,
    requestContext,
    abort,
  }: ProcessOutputStreamArgs) => {
    if (part.type !== "tool-call") return part;
    const { toolCallId } = part.payload;
    const begun = streamParts.findLastIndex((one) => one.type === "step-start");
    const calls = streamParts
      .slice(begun + 1)
      .filter((one) => one.type === "tool-call" && one.payload.toolCallId === toolCallId);
    if (calls.length < 2) return part;
    if (requestContext) {
      // The abort ends the run, but not before Mastra has run the first call.
      const refused = refusedIds.get(requestContext) ?? new Set();
      refusedIds.set(requestContext, refused.add(toolCallId));
    }
    return abort(new DuplicateCallId(toolCallId).message);
  },
};

/**
 * Go on with the calls of the run that people have decided. Any process may call this, at
 * any time and as often as it likes. It waits for at most `waitSeconds` for the first
 * call, and not for others. `requestContext` is that of the agent's own tools.
 */
export async function resumeRun(
  agent: Agent,
  gate: Gate,
  options: {
    readonly thread: string;
    readonly waitSeconds?: number;
    readonly requestContext?: RequestContext;
  },
): Promise<ResumedRun> {
  const thread = checkThread(options.thread, "thread");
  let seconds = options.waitSeconds ?? 0;
  let text = "";
  for (const { runId, toolCallId, waiting } of await listWaiting(agent, thread)) {
    const proposal = await findDecided(gate, waiting, seconds);
    if (proposal === null) continue;
    seconds = 0;
    // The run as the call named it: that of a nested agent may have another name.
    const requestContext = options.requestContext ?? new RequestContext();
    requestContext.set(THREAD_KEY, proposal.thread);
    const output = await agent.resumeStream(
      { proposal: proposal.id },
      { runId, toolCallId, requestContext },
    );
    // `resumeGenerate` never settles while another call of the message waits.
    for await (const chunk of output.fullStream) {
      if (chunk.type === "text-delta") text += chunk.payload.text;
      if (chunk.type === "step-finish") text = chunk.payload.stepResult.isContinued ? "" : text;
    }
  }
  const left = await listWaiting(agent, thread);
  return { waiting: left.map((one) => one.waiting), text: left.length ? "" : text };
}

/** A suspended call of the gate's tools, by the ids that Mastra resumes it with. */
interface SuspendedCall {
  readonly runId: string;
  readonly toolCallId: string;
  readonly waiting: WaitingCall;
}

/** The calls of a run that wait for people. Other suspended calls are left alone. */
export async function listWaiting(agent: Agent, thread: string): Promise<SuspendedCall[]> {
  const { runs } = await agent.listSuspendedRuns({ threadId: thread });
  return runs.flatMap(({ runId, toolCalls }) =>
    toolCalls.flatMap(({ toolCallId, suspendPayload }) =>
      toolCallId && isWaiting(suspendPayload)
        ? [{ runId, toolCallId, waiting: suspendPayload }]
        : [],
    ),
  );
}
