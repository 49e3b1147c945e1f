// Mastra: an agent whose tools pause the run, bare as the documentation shows, or through
// Counterseal's adapter.

import { copyFileSync, existsSync, rmSync } from "node:fs";
import { join } from "node:path";

import { Agent } from "@mastra/core/agent";
import { Mastra } from "@mastra/core/mastra";
import { createTool } from "@mastra/core/tools";
import type { Tool } from "@mastra/core/tools";
import { LibSQLStore } from "@mastra/libsql";

import { Gate, gatedTool } from "../src/index.ts";
import type { Details } from "../src/index.ts";
import { buildRequestContext, buildTool, callIdGuard, resumeRun } from "../src/adapters/mastra.ts";
import { DONE, ToolBox, WORDS } from "./scripting.ts";
import type { Job, Pending, Report, Script } from "./scripting.ts";

const RESOURCE = "kit";
const DELEGATE: Script = [
  [{ id: "outer_1", name: "agent-inner", args: { prompt: "Do it." } }],
];
const NONE = { total: 0, noCache: 0, cacheRead: 0, cacheWrite: 0 };
const USAGE = { inputTokens: NONE, outputTokens: { total: 0, text: 0, reasoning: 0 } };

/** Says the next turn of its script; which one that is, the prompt tells. */
class ScriptedModel {
  readonly specificationVersion = "v4";
  readonly provider = "kit";
  readonly modelId = "scripted";
  readonly supportedUrls = {};
  readonly #script: Script;
  /** The tools' answers in the prompts so far. */
  replies: string[] = [];

  constructor(script: Script) {
    this.#script = script;
  }

  /** As of the SDK's models. The kit streams. */
  async doGenerate(): Promise<never> {
    throw new Error("the kit streams");
  }

  /** As of the SDK's models. */
  async doStream({ prompt }: { prompt: readonly any[] }) {
    this.replies = prompt
      .filter((message) => message.role === "tool")
      .flatMap((message) => message.content)
      .map((part) => JSON.stringify(part.output));
    const turn = prompt.filter((message) => message.role === "assistant").length;
    const calls = this.#script[turn] ?? [];
    const parts = [
      { type: "stream-start", warnings: [] },
      { type: "text-start", id: "words" },
      { type: "text-delta", id: "words", delta: calls.length ? WORDS : DONE },
      { type: "text-end", id: "words" },
      ...calls.map((call) => ({
        type: "tool-call",
        toolCallId: call.id,
        toolName: call.name,
        input: JSON.stringify(call.args),
      })),
      {
        type: "finish",
        finishReason: { unified: calls.length ? "tool-calls" : "stop", raw: undefined },
        usage: USAGE,
      },
    ];
    const stream = new ReadableStream({
      start: (controller) => {
        for (const part of parts) controller.enqueue(part);
        controller.close();
      },
    });
    return { stream };
  }
}

/** The agent of one job, with its suspended runs in SQLite. */
class MastraDriver {
  readonly #job: Job;
  readonly #gate: Gate;
  readonly #inner: ScriptedModel;
  readonly #outer = new ScriptedModel(DELEGATE);
  #agent: Agent;
  #final = "";

  constructor(job: Job) {
    this.#job = job;
    this.#gate = new Gate(job.url, job.key);
    this.#inner = new ScriptedModel(job.script);
    this.#agent = this.#buildAgent(this.#store);
  }

  get #store(): string {
    return join(this.#job.folder, "checkpoints.sqlite");
  }

  #buildAgent(store: string): Agent {
    const inner = new Agent({
      id: "inner",
      name: "inner",
      description: "Does it.",
      instructions: "Do what is asked.",
      model: this.#inner as never,
      tools: this.#buildTools(),
      ...(this.#job.gated ? { outputProcessors: [callIdGuard] } : {}),
    });
    const outer = new Agent({
      id: "outer",
      name: "outer",
      instructions: "Delegate it.",
      model: this.#outer as never,
      agents: { inner },
    });
    const agent = this.#job.nested ? outer : inner;
    const storage = new LibSQLStore({ id: "runs", url: `file:${store}` });
    new Mastra({ agents: { agent }, storage, logger: false });
    return agent;
  }

  #buildTools(): Record<string, Tool> {
    const box = new ToolBox(this.#job);
    const describe = (): Details => {
      box.mark("described");
      return { rationale: WORDS, ...this.#job.details };
    };
    return Object.fromEntries(
      Object.entries(box.tools).map(([name, { description, input }]) => {
        if (!this.#job.gated) {
          const tool = createTool({
            id: name,
            description,
            inputSchema: input,
            requireApproval: true,
            execute: (args) => box.perform(name, args as Record<string, unknown>, ""),
          });
          return [name, tool as unknown as Tool];
        }
        const gated = gatedTool(this.#gate, {
          name,
          description,
          input,
          execute: (args, claim) => box.perform(name, args, claim.idempotency_key),
        });
        return [name, buildTool(gated, { describe })];
      }),
    );
  }

  /** Begin the run with a user message. */
  async startRun(): Promise<void> {
    const { thread, gated } = this.#job;
    await this.#read(
      await this.#agent.stream("Please do it.", {
        runId: thread,
        memory: { thread, resource: RESOURCE },
        ...(gated ? { requestContext: buildRequestContext(thread) } : {}),
      }),
    );
  }

  /**
   * Run again what a crash makes run again. A suspended run never runs the code before
   * the pause again, so this is the crash before it was stored.
   */
  async repeatRun(): Promise<void> {
    for (const end of ["", "-wal", "-shm"]) rmSync(this.#store + end, { force: true });
    this.#agent = this.#buildAgent(this.#store);
    await this.startRun();
  }

  /** Go on with what people decided. */
  async resumeRun(): Promise<void> {
    const older = this.#copyStore();
    if (this.#job.gated) {
      const { thread, wait_seconds: waitSeconds } = this.#job;
      const { text } = await resumeRun(this.#agent, this.#gate, { thread, waitSeconds });
      this.#final = text;
    } else {
      for (const call of await this.#listCalls()) await this.#answerBare(call);
    }
    if (this.#job.hostile) await this.#replay(older);
  }

  async #answerBare(call: SuspendedCall): Promise<void> {
    const { runId, toolCallId, args } = call;
    const to = String((args as Record<string, unknown> | undefined)?.["to"] ?? "");
    const given = this.#job.answers[to] ?? this.#job.answers["*"];
    if (given?.verdict === "reject") {
      const reason = given.reason || "No.";
      await this.#read(await this.#agent.declineToolCall({ runId, toolCallId, reason }));
    } else {
      await this.#read(await this.#agent.approveToolCall({ runId, toolCallId }));
    }
  }

  /** Hostile: approve all that waited in an older copy of the store. */
  async #replay(older: string): Promise<void> {
    const [agent, replies] = [this.#agent, this.#inner.replies];
    this.#agent = this.#buildAgent(older);
    for (const call of await this.#listCalls()) await this.#approve(call);
    [this.#agent, this.#inner.replies] = [agent, replies];
  }

  #copyStore(): string {
    const older = join(this.#job.folder, "older.sqlite");
    for (const end of ["", "-wal", "-shm"]) {
      if (existsSync(this.#store + end)) copyFileSync(this.#store + end, older + end);
    }
    return older;
  }

  /** Send the job's `raw` answer to what waits, or to what once waited. */
  async sendRaw(): Promise<void> {
    const { raw, thread, interrupt_ids } = this.#job;
    const calls = interrupt_ids.length
      ? interrupt_ids.map((toolCallId) => ({ runId: thread, toolCallId }))
      : await this.#listCalls();
    for (const call of calls) {
      if (raw === "malformed") {
        await this.#read(await this.#agent.resumeStream("yes, please", call));
      } else if (raw === "redirection") {
        const edit = { approved: true, toolName: "erase_note", args: { to: "ann" } };
        await this.#read(await this.#agent.resumeStream(edit, call));
      } else {
        await this.#approve(call);
      }
    }
  }

  async #approve(call: { runId: string; toolCallId: string }): Promise<void> {
    const { runId, toolCallId } = call;
    await this.#read(await this.#agent.approveToolCall({ runId, toolCallId }));
  }

  /** Read a stream to its end; it may end with calls that wait. */
  async #read(output: { fullStream: AsyncIterable<any> }): Promise<void> {
    for await (const chunk of output.fullStream) {
      if (chunk.type === "text-delta") this.#final = chunk.payload.text;
      if (chunk.type === "error") throw chunk.payload.error;
    }
  }

  async #listCalls(): Promise<SuspendedCall[]> {
    const { runs } = await this.#agent.listSuspendedRuns({ threadId: this.#job.thread });
    return runs.flatMap(({ runId, toolCalls }) =>
      toolCalls.map(({ toolCallId = "", toolName = "", args, suspendPayload }) => ({
        runId,
        toolCallId,
        toolName,
        args,
        suspendPayload,
      })),
    );
  }

  /** How the stored run stands. */
  async readReport(): Promise<Report> {
    const calls = await this.#listCalls();
    const model = this.#job.nested ? this.#outer : this.#inner;
    return {
      state: calls.length ? "suspended" : "finished",
      pending: calls.map(
        ({ toolCallId, toolName, args }): Pending => ({
          interrupt_id: toolCallId,
          tool: toolName,
          call_id: toolCallId,
          args: args ?? {},
        }),
      ),
      values: calls.map((call) => call.suspendPayload ?? null),
      replies: model.replies,
      final: calls.length ? "" : this.#final,
    };
  }
}

interface SuspendedCall {
  readonly runId: string;
  readonly toolCallId: string;
  readonly toolName: string;
  readonly args: unknown;
  readonly suspendPayload: unknown;
}

/** Do the job in this process. */
export async function runJob(job: Job): Promise<Report> {
  const driver = new MastraDriver(job);
  if (job.action === "start") await driver.startRun();
  if (job.action === "rerun") await driver.repeatRun();
  if (job.action === "resume") await driver.resumeRun();
  if (job.action === "answer") await driver.sendRaw();
  return driver.readReport();
}
