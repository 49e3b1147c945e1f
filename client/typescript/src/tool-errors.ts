// How a call of a tool can end without a result. The texts are written so that an agent
// can hand `error.message` to its model: what happened, why, and whether to call again. A
// rejection always carries a text, since models repeat a call that was refused without
// one.

import { CountersealError } from "./errors.ts";
import { readGuidance } from "./proposals.ts";
import type { Proposal } from "./proposals.ts";

const UNKNOWN_TOOL_RULE = "tool.unknown";

/** For each status without an effect: what happened, and what to do. */
const ENDINGS: Readonly<Record<string, readonly [string, string]>> = {
  blocked: ["The policy forbids it.", "Do not call it again; find another way."],
  expired: ["Nobody decided in time.", "Call it again only if it is still needed."],
  withdrawn: ["It was withdrawn.", "Do not call it again."],
  superseded: ["A later call replaced it.", "Do not call it again."],
  refused: [
    "It was approved, but no longer held right before the effect.",
    "Read the current state before you call it again.",
  ],
};

/** A call of a tool ended without a result. `proposal` is its state at the gate. */
export class ToolError extends CountersealError {
  override readonly name: string = "ToolError";
  readonly proposal: Proposal;

  constructor(proposal: Proposal, text: string, nextStep: string) {
    super(`${proposal.tool}: ${text}`, nextStep);
    this.proposal = proposal;
  }
}

/**
 * People have not decided yet, or another process is performing the effect. Call the tool
 * again with the same thread and call id to go on waiting.
 */
export class ApprovalPending extends ToolError {
  override readonly name = "ApprovalPending";

  constructor(proposal: Proposal) {
    const performed = proposal.status === "executing";
    const text = performed ? "The call is being performed." : "The call is waiting.";
    super(proposal, text, "Call it again later with the same thread and call id.");
  }
}

/** A person sent the request back with guidance: revise the proposal, or withdraw it. */
export class ReturnedForRevision extends ToolError {
  override readonly name = "ReturnedForRevision";

  constructor(proposal: Proposal) {
    const text = `A person sent it back with guidance. ${readGuidance(proposal)}`.trim();
    super(proposal, text, "Revise the proposal accordingly, or withdraw it.");
  }
}

/**
 * The call ended without an effect: it was blocked, rejected, expired, withdrawn,
 * superseded or refused. `proposal.status` says which.
 */
export class NotPerformed extends ToolError {
  override readonly name: string = "NotPerformed";

  constructor(proposal: Proposal, text = "", nextStep = "") {
    const [happened, step] = ENDINGS[proposal.status] ?? [`It ended as ${proposal.status}.`, ""];
    const said = text || [happened, ...listCauses(proposal)].join(" ");
    if (proposal.may_have_run) {
      const restored = " It was restored from a backup and may have happened before.";
      const check = "Check whether it happened before you do anything else.";
      super(proposal, said + restored, check);
    } else {
      super(proposal, said, nextStep || step);
    }
  }
}

/**
 * A person rejected the call. `reasonCode` and `reason` say why; with the code "skip" the
 * agent carries on without the effect.
 */
export class Rejected extends NotPerformed {
  override readonly name = "Rejected";
  readonly reasonCode: string;
  readonly reason: string;

  constructor(proposal: Proposal) {
    const reasonCode = proposal.decision?.reason_code ?? "";
    const reason = proposal.decision?.reason ?? "";
    const code = (reasonCode || "no reason given").replaceAll("_", " ");
    const words = reason ? ` They wrote: "${reason}"` : "";
    super(
      proposal,
      `A reviewer rejected it (${code}).${words}`,
      reasonCode === "skip"
        ? "Carry on without it."
        : "Do not call it again with the same arguments.",
    );
    this.reasonCode = reasonCode;
    this.reason = reason;
  }
}

/** The gate's policy has no tool of this name. */
export class ToolNotDeclared extends NotPerformed {
  override readonly name = "ToolNotDeclared";

  constructor(proposal: Proposal) {
    super(
      proposal,
      "The gate's policy declares no such tool.",
      "Ask an administrator to add it under `tools:` of the policy (`counterseal" +
        " policy load`) and to allow it to this agent (`counterseal agents change AGENT" +
        ` --by ADMINISTRATOR --add-tool ${proposal.tool}\`).`,
    );
  }
}

/** The effect was tried and certainly did not happen. `code` says why. */
export class EffectFailed extends ToolError {
  override readonly name = "EffectFailed";
  readonly code: string;

  constructor(proposal: Proposal) {
    const causes = listCauses(proposal);
    const text = ["The effect failed and nothing happened.", ...causes].join(" ");
    super(proposal, text, "A person may have it tried again.");
    this.code = proposal.execution?.code ?? "";
  }
}

/** Nobody can say yet whether the effect happened. */
export class OutcomeUnknown extends ToolError {
  override readonly name = "OutcomeUnknown";

  constructor(proposal: Proposal) {
    const text = "Nobody can say yet whether the effect happened.";
    super(proposal, text, "Do not call it again. A person finds out what happened.");
  }
}

/**
 * Throw it from a tool's function when the effect certainly did not happen. The client
 * then reports the call as failed; after any other error it reports that the outcome is
 * unknown.
 */
export class NothingHappened extends Error {
  override readonly name = "NothingHappened";
  readonly code: string;

  constructor(detail: string, code = "failed") {
    super(detail);
    this.code = code;
  }
}

/** The error for a proposal that has ended without a result. */
export function buildToolError(proposal: Proposal): ToolError {
  switch (proposal.status) {
    case "rejected":
      return new Rejected(proposal);
    case "failed":
      return new EffectFailed(proposal);
    case "unknown":
      return new OutcomeUnknown(proposal);
    default:
      return isUndeclared(proposal) ? new ToolNotDeclared(proposal) : new NotPerformed(proposal);
  }
}

/**
 * Why a decided call has no effect, for the model; empty if it may have one. A refusal
 * always has a text: without one, models repeat the call.
 */
export function readRefusal(proposal: Proposal): string {
  if (proposal.returned) return new ReturnedForRevision(proposal).message;
  if (proposal.grant !== null || proposal.status === "executed") return "";
  return buildToolError(proposal).message;
}

function isUndeclared(proposal: Proposal): boolean {
  const ids = proposal.policy.rules.map((rule) => rule.id);
  return proposal.status === "blocked" && ids.includes(UNKNOWN_TOOL_RULE);
}

/** What the policy or the execution says about the end. */
function listCauses(proposal: Proposal): readonly string[] {
  if (proposal.status === "blocked") {
    return proposal.policy.rules.map((rule) => rule.text).filter(Boolean);
  }
  const detail = proposal.execution?.detail;
  return detail ? [detail] : [];
}
