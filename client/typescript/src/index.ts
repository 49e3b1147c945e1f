// The TypeScript client of Counterseal: call tools through the gate, or propose an action,
// wait, and carry on with the outcome. It needs nothing but `fetch` and Web Crypto.

export type {
  CheckpointOut,
  DecisionOut,
  ExecutionOut,
  JsonObject,
  JsonValue,
  MessageOut,
  ProposalIn,
  ProposalPage,
  QuestionOut,
  RevisionIn,
  ThreadResult,
  ToolOut,
  WhoamiOut,
} from "./api.ts";
export { buildCallKey } from "./call-keys.ts";
export type { Backoff, ConnectionOptions } from "./calls.ts";
export {
  ApiError,
  CountersealError,
  InvalidAnswer,
  InvalidArguments,
  QuestionEnded,
  Unreachable,
} from "./errors.ts";
export type { FieldError } from "./errors.ts";
export { Gate } from "./gate.ts";
export type { Claim, Details, Outcome, ThreadState } from "./gate.ts";
export { InvalidGrant, verifyGrant } from "./grants.ts";
export type { ExpectedGrant, GrantClaims, GrantFault, VerifiedGrant } from "./grants.ts";
export {
  FINAL_STATUSES,
  isFinal,
  isReady,
  listQuestions,
  listReceived,
  readGuidance,
} from "./proposals.ts";
export type { Proposal } from "./proposals.ts";
export type { Schema } from "./schemas.ts";
export {
  ApprovalPending,
  EffectFailed,
  NotPerformed,
  NothingHappened,
  OutcomeUnknown,
  Rejected,
  ReturnedForRevision,
  ToolError,
  ToolNotDeclared,
} from "./tool-errors.ts";
export { GatedTool, gatedTool } from "./tools.ts";
export type { CallNames, CallOptions, ToolDefinition, ToolResult } from "./tools.ts";
export { NotVerified, verifyWebhook } from "./webhooks.ts";
export type { WebhookEvent, WebhookHeaders } from "./webhooks.ts";
