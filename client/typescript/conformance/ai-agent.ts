// Vercel AI SDK: an agent whose tools stop the SDK with approval requests, bare as the
// documentation shows, or through Counterseal's adapter. The SDK leaves it to its user to
// keep the messages.

import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

import { generateText, isStepCount, tool } from "ai";
import type { ModelMessage, ToolApprovalResponse } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { z } from "zod";

import { answerApprovals, gateTools } from "../src/adapters/ai.ts";
import type { GatedTools } from "../src/adapters/ai.ts";
import { Gate, gatedTool } from "../src/index.ts";
import { DONE, ToolBox, WORDS } from "./scripting.ts";
import type { Job, Pending, Report, Script } from "./scripting.ts";

const DELEGATE: Script = [[{ id: "outer_1", name: "delegate", args: { task: "Do it." } }]];
const NONE = { total: 0, noCache: 0, cacheRead: 0, cacheWrite: 0 };
const USAGE = { inputTokens: NONE, outputTokens: { total: 0, text: 0, reasoning: 0 } };
const FIRST: ModelMessage = { role: "user", content: "Please do it." };

/** The messages of the agent, and those of the agent behind `delegate`. */
interface State {
  messages: ModelMessage[];
  inner: ModelMessage[];
}

/** An approval request without an answer, with its call. */
interface OpenRequest {
  readonly approvalId: string;
  readonly callId: string;
  readonly name: string;
  readonly args: Record<string, unknown>;
}

type Part = Extract<ModelMessage["content"], readonly unknown[]>[number];

/** A model that says the next turn of its script; which one that is, the prompt tells. */
function buildModel(script: Script): MockLanguageModelV4 {
  return new MockLanguageModelV4({
    doGenerate: async ({ prompt }) => {
      const turn = prompt.filter((message) => message.role === "assistant").length;
      const calls = script[turn] ?? [];
      return {
        content: [
          { type: "text", text: calls.length ? WORDS : DONE },
          ...calls.map((call) => ({
            type: "tool-call" as const,
            toolCallId: call.id,
            toolName: call.name,
            input: JSON.stringify(call.args),
          })),
        ],
        finishReason: { unified: calls.length ? "tool-calls" : "stop", raw: undefined },
        usage: USAGE,
        warnings: [],
      };
    },
  });
}

/** The parts of all messages. */
function listParts(messages: readonly ModelMessage[]): Part[] {
  const found: Part[] = [];
  for (const { content } of messages) if (typeof content !== "string") found.push(...content);
  return found;
}

/** The requests that no later message answers. */
function listOpen(messages: readonly ModelMessage[]): OpenRequest[] {
  const open = new Map<string, OpenRequest>();
  const calls = new Map<string, { toolName: string; input: unknown }>();
  for (const part of listParts(messages)) {
    if (part.type === "tool-call") calls.set(part.toolCallId, part);
    if (part.type === "tool-approval-response") open.delete(part.approvalId);
    if (part.type === "tool-approval-request" && !part.isAutomatic) {
      const { approvalId, toolCallId: callId } = part;
      const { toolName: name = "", input } = calls.get(callId) ?? {};
      const args = (input ?? {}) as Record<string, unknown>;
      open.set(approvalId, { approvalId, callId, name, args });
    }
  }
  return [...open.values()];
}

/** The tools' answers in the messages. */
function listReplies(messages: readonly ModelMessage[]): string[] {
  return listParts(messages).flatMap((part) =>
    part.type === "tool-result" ? [JSON.stringify(part.output)] : [],
  );
}

/** The agent of one job, with its messages in SQLite. */
class AiDriver {
  readonly #job: Job;
  readonly #database: DatabaseSync;
  readonly #gated: GatedTools | null;
  readonly #settings: Record<string, unknown>;
  #state: State = { messages: [FIRST], inner: [FIRST] };

  constructor(job: Job) {
    this.#job = job;
    this.#database = new DatabaseSync(join(job.folder, "checkpoints.sqlite"));
    this.#database.exec("CREATE TABLE IF NOT EXISTS run (state TEXT NOT NULL)");
    this.#gated = job.gated ? this.#buildGated() : null;
    this.#settings = { ...(this.#gated ?? this.#buildBare()) };
  }

  #buildGated(): GatedTools {
    const box = new ToolBox(this.#job);
    const gate = new Gate(this.#job.url, this.#job.key);
    const tools = Object.entries(box.tools).map(([name, { description, input }]) =>
      gatedTool(gate, {
        name,
        description,
        input,
        execute: (args, claim) => box.perform(name, args, claim.idempotency_key),
      }),
    );
    const describe = () => {
      box.mark("described");
      return { rationale: WORDS, ...this.#job.details };
    };
    return gateTools(tools, { thread: this.#job.thread, describe });
  }

  #buildBare(): Record<string, unknown> {
    const box = new ToolBox(this.#job);
    const entries = Object.entries(box.tools).map(([name, { description, input }]) => {
      const execute = (args: Record<string, unknown>) => box.perform(name, args, "");
      return [name, tool({ description, inputSchema: input, execute })] as const;
    });
    const ask = () => {
      box.mark("asked");
      return { type: "user-approval" };
    };
    const names = Object.keys(box.tools);
    return {
      tools: Object.fromEntries(entries),
      toolApproval: Object.fromEntries(names.map((name) => [name, ask])),
    };
  }

  /** Run the scripted agent from these messages; they get what it said. */
  async #runInner(messages: ModelMessage[]): Promise<ModelMessage[]> {
    return this.#generate(messages, this.#job.script, this.#settings);
  }

  async #generate(
    messages: ModelMessage[],
    script: Script,
    settings: Record<string, unknown>,
  ): Promise<ModelMessage[]> {
    const model = buildModel(script);
    const stopWhen = isStepCount(8);
    const result = await generateText({ model, messages, stopWhen, maxRetries: 0, ...settings });
    return [...messages, ...result.responseMessages];
  }

  /** Run the outer agent. Its only tool waits for an approval while the inner one does. */
  async #runOuter(messages: ModelMessage[]): Promise<ModelMessage[]> {
    const delegate = tool({
      description: "Hand a task to another agent.",
      inputSchema: z.object({ task: z.string() }),
      execute: () => DONE,
    });
    const waits = async () => {
      if (this.#state.inner.length === 1) {
        this.#state.inner = await this.#runInner(this.#state.inner);
      }
      return listOpen(this.#state.inner).length ? { type: "user-approval" } : "approved";
    };
    const settings = { tools: { delegate }, toolApproval: { delegate: waits } };
    return this.#generate(messages, DELEGATE, settings);
  }

  /** Begin the run with a user message. */
  async startRun(): Promise<void> {
    this.#state = { messages: [FIRST], inner: [FIRST] };
    const { messages } = this.#state;
    const run = this.#job.nested ? this.#runOuter(messages) : this.#runInner(messages);
    this.#state.messages = await run;
    this.#save();
  }

  /** Run again what a crash makes run again: the run before its messages were kept. */
  async repeatRun(): Promise<void> {
    await this.startRun();
  }

  /** Go on with what people decided. */
  async resumeRun(): Promise<void> {
    this.#load();
    const waiting = this.#job.nested ? this.#state.inner : this.#state.messages;
    const answered = await this.#answer(waiting);
    if (answered === null) return;
    const after = await this.#runInner(answered);
    if (this.#job.nested) {
      this.#state.inner = after;
      const outer = listOpen(this.#state.messages).map(({ approvalId }) => approvalId);
      const approved = [...this.#state.messages, buildApprovals(outer)];
      this.#state.messages = await this.#runOuter(approved);
    } else {
      this.#state.messages = after;
    }
    this.#save();
    if (this.#job.hostile) await this.#replay(waiting);
  }

  async #answer(messages: ModelMessage[]): Promise<ModelMessage[] | null> {
    if (this.#gated) {
      return answerApprovals(messages, this.#gated, { waitSeconds: this.#job.wait_seconds });
    }
    const content = listOpen(messages).map(({ approvalId, args }): ToolApprovalResponse => {
      const given = this.#job.answers[String(args["to"] ?? "")] ?? this.#job.answers["*"];
      const approved = given?.verdict !== "reject";
      return {
        type: "tool-approval-response",
        approvalId,
        approved,
        ...(approved ? {} : { reason: given?.reason || "No." }),
      };
    });
    return content.length ? [...messages, { role: "tool", content }] : null;
  }

  /** Hostile: send the older messages once more, with everything approved. */
  async #replay(before: ModelMessage[]): Promise<void> {
    const ids = listOpen(before).map(({ approvalId }) => approvalId);
    await this.#runInner([...before, buildApprovals(ids)]);
  }

  /** Send the job's `raw` answer to what waits, or to what once waited. */
  async sendRaw(): Promise<void> {
    this.#load();
    const { messages } = this.#state;
    const { raw, interrupt_ids } = this.#job;
    const open = listOpen(messages).map(({ approvalId }) => approvalId);
    const answer = buildApprovals(interrupt_ids.length ? interrupt_ids : open);
    if (raw === "redirection") {
      for (const part of answer.content) {
        Object.assign(part, { toolName: "erase_note", input: { to: "ann" } });
      }
    }
    const sent = raw === "malformed" ? { role: "tool", content: "yes, please" } : answer;
    this.#state.messages = await this.#runInner([...messages, sent as ModelMessage]);
    this.#save();
  }

  #save(): void {
    this.#database.exec("DELETE FROM run");
    const insert = this.#database.prepare("INSERT INTO run VALUES (?)");
    insert.run(JSON.stringify(this.#state));
  }

  #load(): void {
    const row = this.#database.prepare("SELECT state FROM run").get();
    if (row) this.#state = JSON.parse(String(row["state"])) as State;
  }

  /** How the stored run stands. */
  readReport(): Report {
    this.#load();
    const { messages, inner } = this.#state;
    const open = listOpen(this.#job.nested ? inner : messages);
    const last = messages.at(-1)?.content;
    const text = Array.isArray(last) ? last.find((part) => part.type === "text") : undefined;
    return {
      state: open.length ? "suspended" : "finished",
      pending: open.map(
        ({ approvalId, callId, name, args }): Pending => ({
          interrupt_id: approvalId,
          tool: name,
          call_id: callId,
          args,
        }),
      ),
      values: listParts(this.#job.nested ? inner : messages).filter(
        (part) => part.type === "tool-approval-request",
      ),
      replies: listReplies(this.#job.nested ? [...messages, ...inner] : messages),
      final: open.length || text?.type !== "text" ? "" : text.text,
    };
  }
}

function buildApprovals(ids: readonly string[]): {
  role: "tool";
  content: ToolApprovalResponse[];
} {
  const content = ids.map(
    (approvalId): ToolApprovalResponse => ({
      type: "tool-approval-response",
      approvalId,
      approved: true,
    }),
  );
  return { role: "tool", content };
}

/** Do the job in this process. */
export async function runJob(job: Job): Promise<Report> {
  const driver = new AiDriver(job);
  if (job.action === "start") await driver.startRun();
  if (job.action === "rerun") await driver.repeatRun();
  if (job.action === "resume") await driver.resumeRun();
  if (job.action === "answer") await driver.sendRaw();
  return driver.readReport();
}
