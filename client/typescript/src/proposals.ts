// A proposal as the gate describes it, and what an agent reads in it.

import type { MessageOut, ProposalOut } from "./api.ts";

/** One proposed action and its current state, with the field names of the API. */
export type Proposal = ProposalOut;

/** Statuses after which waiting ends. `unknown` may later be settled by a person. */
export const FINAL_STATUSES: readonly string[] = [
  "blocked",
  "executed",
  "failed",
  "unknown",
  "refused",
  "rejected",
  "expired",
  "withdrawn",
  "superseded",
];

/** Whether the status is final. */
export function isFinal(proposal: Proposal): boolean {
  return FINAL_STATUSES.includes(proposal.status);
}

/** Whether the agent can go on: it ended, it may be redeemed, or it was returned. */
export function isReady(proposal: Proposal): boolean {
  return isFinal(proposal) || proposal.grant !== null || proposal.returned;
}

/** The messages of people. */
export function listReceived(proposal: Proposal): readonly MessageOut[] {
  return proposal.messages.filter((one) => one.from !== "agent");
}

/** The questions of people that the agent has not answered yet. */
export function listQuestions(proposal: Proposal): readonly MessageOut[] {
  const answered = new Set(
    proposal.messages
      .filter((one) => one.from === "agent" && one.kind === "answer")
      .map((one) => one.round),
  );
  return listReceived(proposal).filter(
    (one) => one.kind === "question" && !answered.has(one.round),
  );
}

/** What the last person wrote who returned the proposal, or nothing. */
export function readGuidance(proposal: Proposal): string {
  return proposal.messages.findLast((one) => one.kind === "guidance")?.text ?? "";
}

/** Whether there is something to act on since the agent first looked. */
export function isNews(now: Proposal, first: Proposal): boolean {
  const wrote = listReceived(now).length > listReceived(first).length;
  const returned = now.returned && !first.returned;
  return isFinal(now) || now.grant !== null || returned || wrote;
}
