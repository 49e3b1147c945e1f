// A function as a tool that the gate controls: propose, wait, redeem right before the
// effect, run the function with the approved arguments, report the outcome.
//
// Which tools there are, and who must approve, is the policy's business. A function only
// says what the agent does once it holds the claim.

import type { JsonObject, JsonValue } from "./api.ts";
import { buildCallKey } from "./call-keys.ts";
import { ApiError, CountersealError, InvalidArguments } from "./errors.ts";
import { QUICK, readClock } from "./gate.ts";
import type { Claim, Details, Gate } from "./gate.ts";
import { isFinal, isReady } from "./proposals.ts";
import type { Proposal } from "./proposals.ts";
import { dumpArguments, dumpResult, isSameJson, loadArguments, loadResult } from "./schemas.ts";
import type { Schema } from "./schemas.ts";
import {
  ApprovalPending,
  NothingHappened,
  ReturnedForRevision,
  buildToolError,
} from "./tool-errors.ts";

/** How long a call that does not wait for people waits for an effect under way. */
const PROMPT_SECONDS = 5;

/** Refusals of a redeem that the proposal's own status explains. */
const SETTLED_AT_REDEEM: readonly string[] = [
  "grant_spent",
  "grant_expired",
  "precondition",
  "tool_changed",
];

/** A tool, as the agent's code knows it. */
export interface ToolDefinition<Args, Result> {
  /** The tool's name in the policy. */
  readonly name: string;
  /** What it does, for a model. */
  readonly description: string;
  /** Any schema that follows Standard Schema, such as one of Zod. */
  readonly input: Schema<Args>;
  /**
   * Performs the effect. Hand `claim.idempotency_key` to the service that performs it: it
   * stays the same when an attempt is repeated.
   */
  readonly execute: (args: Args, claim: Claim) => Promise<Result> | Result;
  /** If given, each call verifies its grant's signature for this audience. */
  readonly audience?: string;
}

/** The names of one call at the gate, and the details of its proposal. */
export interface CallNames {
  /** One run of the agent. */
  readonly thread: string;
  /** The framework's own id of the call: another call of the run has another one. */
  readonly callId: string;
  readonly details?: Details;
}

/** Names, and for how many seconds to wait for people; without it, until the end. */
export interface CallOptions extends CallNames {
  readonly waitSeconds?: number;
}

/**
 * What became of a call: the function's result, or the recorded one of an earlier process
 * or of the gate, and the arguments that were performed. `edited`: a reviewer changed
 * them.
 */
export interface ToolResult<Result> {
  readonly value: Result | JsonValue;
  readonly args: JsonObject;
  readonly edited: boolean;
}

/**
 * A function behind the gate.
 *
 * The same call continues where an earlier process died: it waits on, or performs what
 * was approved meanwhile, or returns the recorded result. Where the policy has the gate
 * perform the tool, the function is not called, and the call returns what the gate
 * recorded. A call that ends without a result throws a ToolError.
 */
export class GatedTool<Args = unknown, Result = unknown> {
  readonly name: string;
  readonly description: string;
  readonly input: Schema<Args>;
  readonly gate: Gate;
  readonly #execute: ToolDefinition<Args, Result>["execute"];
  readonly #audience: string;

  constructor(gate: Gate, definition: ToolDefinition<Args, Result>) {
    this.gate = gate;
    this.name = definition.name;
    this.description = definition.description;
    this.input = definition.input;
    this.#execute = definition.execute;
    this.#audience = definition.audience ?? "";
  }

  /** Call the tool, and return its result. */
  async call(args: unknown, options: CallOptions): Promise<Result | JsonValue> {
    return (await this.perform(args, options)).value;
  }

  /** As `call`, and return the performed arguments with the result. */
  async perform(args: unknown, options: CallOptions): Promise<ToolResult<Result>> {
    const proposed = await dumpArguments(this.name, this.input, args);
    const proposal = await this.#proposeCall(proposed, options);
    return this.#follow(proposal, proposed, options.waitSeconds);
  }

  /** Propose the call without performing it, and return its current state. */
  async propose(args: unknown, names: CallNames): Promise<Proposal> {
    const proposed = await dumpArguments(this.name, this.input, args);
    return this.gate.get((await this.#proposeCall(proposed, names)).id);
  }

  /**
   * Propose the call, or find it: the same thread and call id always lead to the same
   * proposal. Its state may be that of the first answer.
   */
  async #proposeCall(args: JsonObject, names: CallNames): Promise<Proposal> {
    const { thread, callId, details } = names;
    return this.gate.propose(
      { ...details, thread, tool: this.name, args },
      { idempotencyKey: await buildCallKey(thread, callId) },
    );
  }

  async #follow(
    found: Proposal,
    args: JsonObject,
    waitSeconds = Number.POSITIVE_INFINITY,
  ): Promise<ToolResult<Result>> {
    const end = readClock() + waitSeconds;
    let proposal = found;
    while (!isFinal(proposal)) {
      if (proposal.grant !== null) {
        const claim = await this.#claim(proposal.grant.token);
        if (claim !== null) {
          const value = await this.#perform(claim);
          return { value, args: claim.args, edited: !isSameJson(claim.args, args) };
        }
      }
      if (proposal.returned) throw new ReturnedForRevision(proposal);
      proposal = await this.#awaitNews(proposal, end);
    }
    if (proposal.status !== "executed") throw buildToolError(proposal);
    const performed = proposal.decision?.final_args ?? args;
    const value = loadResult(proposal.execution?.result ?? null);
    return { value, args: performed, edited: !isSameJson(performed, args) };
  }

  /**
   * The claim, or null when there is none to have: another process has it, or a check
   * right before the effect refused it. The proposal says what follows.
   */
  async #claim(token: string): Promise<Claim | null> {
    try {
      return await this.gate.redeem(token);
    } catch (error) {
      if (!(error instanceof ApiError && SETTLED_AT_REDEEM.includes(error.code))) throw error;
    }
    await this.gate.connection.pause(QUICK);
    return null;
  }

  /**
   * The proposal once it has news. Throws ApprovalPending when it has none in time. An
   * effect that nobody needs to decide on is given PROMPT_SECONDS.
   */
  async #awaitNews(proposal: Proposal, end: number): Promise<Proposal> {
    let now = await this.gate.get(proposal.id);
    if (isReady(now)) return now;
    const left = Math.max(0, end - readClock());
    const begun = now.status === "granted" || now.status === "executing";
    const seconds = begun ? Math.max(left, PROMPT_SECONDS) : left;
    if (seconds > 0) now = await this.gate.wait(now.id, seconds);
    if (!isReady(now) && readClock() >= end) throw new ApprovalPending(now);
    return now;
  }

  /** Run the function under the claim and report what became of it. */
  async #perform(claim: Claim): Promise<Result> {
    const args = await this.#checkClaim(claim);
    let result: Result;
    try {
      result = await this.#execute(args, claim);
    } catch (error) {
      const detail = error instanceof Error ? error.message : String(error);
      if (error instanceof NothingHappened) {
        await this.gate.report(claim, { status: "failed", code: error.code, detail });
      } else {
        // Only the function can know that nothing happened.
        const code = error instanceof Error ? error.name : "Error";
        await this.gate.report(claim, { status: "unknown", code, detail });
      }
      throw error;
    }
    try {
      await this.gate.report(claim, { status: "succeeded", result: dumpResult(result) });
    } catch (error) {
      if (error instanceof CountersealError) {
        error.message += ` ${this.name} was performed; only its report was refused.`;
      }
      throw error;
    }
    return result;
  }

  /**
   * The approved arguments for the function, checked again: a reviewer may have edited
   * them. Reports that nothing happened when they do not fit.
   */
  async #checkClaim(claim: Claim): Promise<Args> {
    try {
      if (claim.tool !== this.name) {
        const message = `the grant is for ${claim.tool}`;
        throw new InvalidArguments(this.name, [{ path: "tool", message }]);
      }
      if (this.#audience) await this.gate.verifyGrant(claim, this.#audience);
      return await loadArguments(this.name, this.input, claim.args);
    } catch (error) {
      const detail = error instanceof Error ? error.message : String(error);
      await this.gate.report(claim, { status: "failed", code: "not_performed", detail });
      throw error;
    }
  }
}

/** Put a function behind the gate; see GatedTool. */
export function gatedTool<Args, Result>(
  gate: Gate,
  definition: ToolDefinition<Args, Result>,
): GatedTool<Args, Result> {
  return new GatedTool(gate, definition);
}
