// The scripted side of a check, as counterseal_conformance/scripting.py and worker.py
// have it: what the model says, what the tools do, and what a process is asked for.

import { appendFileSync, closeSync, openSync, readdirSync, existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { z } from "zod";

/** What the model says beside each call, and at the end. */
export const WORDS = "I do what was asked.";
export const DONE = "It is done.";

const BARRIER_SECONDS = 60;
const RENDEZVOUS_SECONDS = 2;

/** One tool call of the model. */
export interface ScriptedCall {
  readonly id: string;
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
}

/** The turns of the model, each a list of calls. */
export type Script = readonly (readonly ScriptedCall[])[];

/** What people answered to a call of a framework without a gate. */
export interface ScriptedAnswer {
  readonly verdict: string;
  readonly reason?: string;
}

/** What one process is to do; `Job` of worker.py describes each field. */
export interface Job {
  readonly action: "start" | "rerun" | "resume" | "answer" | "list";
  readonly variant: "ai" | "mastra";
  readonly gated: boolean;
  readonly thread: string;
  readonly folder: string;
  readonly script: Script;
  readonly url: string;
  readonly key: string;
  readonly answers: Readonly<Record<string, ScriptedAnswer>>;
  readonly raw: string;
  readonly interrupt_ids: readonly string[];
  readonly details: Readonly<Record<string, unknown>>;
  readonly wait_seconds: number;
  readonly nested: boolean;
  readonly hostile: boolean;
  readonly kill_after_effect: boolean;
  readonly barrier: string;
  readonly rendezvous: boolean;
}

/** A call that waits, as the framework shows it. */
export interface Pending {
  readonly interrupt_id: string;
  readonly tool: string;
  readonly call_id: string;
  readonly args: unknown;
}

/** How a run stands. */
export interface Report {
  readonly state: "suspended" | "finished" | "failed";
  readonly pending?: readonly Pending[];
  readonly values?: readonly unknown[];
  readonly replies?: readonly string[];
  readonly final?: string;
  readonly error?: string;
}

/** Wait until the kit has started every process that takes part in a race. */
export async function meetOthers(barrier: string): Promise<void> {
  const end = Date.now() + BARRIER_SECONDS * 1000;
  while (barrier && !existsSync(barrier)) {
    if (Date.now() > end) throw new Error(`${barrier} did not appear`);
    await sleep(5);
  }
}

/** One tool: what a model reads of it, what it takes and what it answers. */
interface BoxTool {
  readonly description: string;
  readonly input: z.ZodType<Record<string, unknown>>;
  readonly result: (args: Record<string, unknown>) => Record<string, unknown>;
}

/** The functions behind the tools, and the ledger that they write to. */
export class ToolBox {
  readonly #job: Job;

  constructor(job: Job) {
    this.#job = job;
  }

  /** The names of the tools, what they take, and what they answer. */
  readonly tools: Readonly<Record<string, BoxTool>> = {
    send_note: {
      description: "Send a note to a person.",
      input: z.strictObject({ to: z.string(), text: z.string() }),
      result: (args) => ({ sent: args["to"] }),
    },
    order_parts: {
      description: "Order a number of parts by a date.",
      input: z.strictObject({
        part: z.string(),
        count: z.int(),
        due: z.iso.date().transform((text) => new Date(text)),
      }),
      result: (args) => ({ ordered: args["count"] }),
    },
    erase_note: {
      description: "Erase the notes to a person.",
      input: z.strictObject({ to: z.string() }),
      result: (args) => ({ erased: args["to"] }),
    },
  };

  /** Perform an effect. `key` is empty where the framework gives none. */
  async perform(
    name: string,
    args: Record<string, unknown>,
    key: string,
  ): Promise<Record<string, unknown>> {
    if (this.#job.rendezvous) await this.#meetAtEffect();
    const entries = Object.entries(args);
    this.#append({
      tool: name,
      args: Object.fromEntries(entries.map(([field, value]) => [field, String(value)])),
      types: Object.fromEntries(entries.map(([field, value]) => [field, nameType(value)])),
      key,
    });
    if (this.#job.kill_after_effect) {
      process.kill(process.pid, "SIGKILL");
      await sleep(60_000); // the signal ends the process, but not at once
    }
    return this.tools[name]!.result(args);
  }

  /** Note that code before the pause ran. */
  mark(what: string): void {
    this.#append({ mark: what });
  }

  /**
   * Right before the effect, give another process the time to come here too: whoever let
   * two of them in has two effects.
   */
  async #meetAtEffect(): Promise<void> {
    const { folder } = this.#job;
    closeSync(openSync(join(folder, `arrived-${process.pid}`), "w"));
    const end = Date.now() + RENDEZVOUS_SECONDS * 1000;
    const count = () => readdirSync(folder).filter((name) => name.startsWith("arrived-")).length;
    while (count() < 2 && Date.now() < end) await sleep(5);
  }

  #append(row: unknown): void {
    appendFileSync(join(this.#job.folder, "ledger"), `${JSON.stringify(row)}\n`);
  }
}

/** The type of an argument in the kit's words, which are Python's. */
function nameType(value: unknown): string {
  if (value instanceof Date) return "date";
  if (typeof value === "number") return Number.isInteger(value) ? "int" : "float";
  return typeof value === "string" ? "str" : typeof value;
}
