// `manage.py typescript_types` prints this file from the OpenAPI document. A test fails
// when they differ, so do not edit it.

/** A value of JSON. A decimal amount is a string: a number would be a float. */
export type JsonValue =
  | string
  | number
  | boolean
  | null
  | readonly JsonValue[]
  | JsonObject;

/** An object of JSON. */
export type JsonObject = { readonly [name: string]: JsonValue };

/**
 * `invoke` or `tools/call` for a tool; otherwise the second part of the tool's
 * name. `properties` are its arguments.
 */
export interface AccessAction {
  readonly name: string;
  readonly properties?: JsonObject;
}

/** The actor that submits the request: the agent to which the key belongs. */
export interface AccessActor {
  readonly id: string;
  readonly act?: JsonObject | null;
}

export interface AccessClient {
  readonly actor?: AccessActor | null;
}

/**
 * `thread` names the run, `preconditions` are as in a proposal: both are part of
 * what people approve. Other members are not.
 */
export interface AccessContext {
  readonly thread?: string | null;
  readonly preconditions?: JsonObject | null;
  readonly business_justification?: string;
  readonly approval?: ApprovalReference | null;
}

/**
 * `POST /access/v1/requests`: the members of the denied evaluation again, with the
 * denial.
 */
export interface AccessRequestIn {
  readonly subject: AccessSubject;
  readonly resource: AccessResource;
  readonly action: AccessAction;
  readonly context?: AccessContext;
  readonly denial?: DenialIn | null;
  readonly requested_access?: RequestedAccess;
  readonly client?: AccessClient;
  readonly items?: null;
  readonly callback?: null;
}

/**
 * A tool (`type` is `tool`, `id` its name), or what a tool named
 * `<type>.<action name>` acts upon.
 */
export interface AccessResource {
  readonly type: string;
  readonly id: string;
  readonly properties?: JsonObject;
}

/**
 * Who wants the effect. `type` is `agent`, `user`, `identity`, `customer` or
 * `schedule`.
 */
export interface AccessSubject {
  readonly type: "agent" | "user" | "identity" | "customer" | "schedule";
  readonly id: string;
  readonly properties?: JsonObject;
}

export interface AcknowledgeIn {
  readonly outcome: string;
}

/** Another action that the agent considered, and why it did not choose it. */
export interface Alternative {
  readonly action: string;
  readonly why_not?: string;
}

/** The `approval` of a completed task, unchanged. */
export interface ApprovalReference {
  readonly id: string;
  readonly state?: string | null;
}

export interface BatchDetailOut {
  readonly id: string;
  /** What all items together do, as one sentence. */
  readonly title: string;
  readonly risk: string;
  readonly rules: ReadonlyArray<string>;
  /** Sums over the items that are not in `leave_out`. */
  readonly costs: ReadonlyArray<CostOut>;
  readonly status: string;
  readonly tool: string;
  readonly agent: string;
  readonly queue: string;
  readonly group: string;
  /** RFC 3339, in UTC with milliseconds: 2026-11-27T14:05:00.000Z */
  readonly formed_at: string;
  /** RFC 3339, in UTC with milliseconds: 2026-11-27T14:05:00.000Z */
  readonly closes_at: string;
  readonly settled_at: string | null;
  readonly digest: string;
  readonly total: string | null;
  readonly currency: string | null;
  readonly stop_at_failure: boolean;
  readonly halted: boolean;
  readonly can_decide: boolean;
  readonly why_not: string;
  readonly items: ReadonlyArray<BatchMemberOut>;
}

/** `POST /proposals/batch`. Each item is validated on its own, as `BatchItemIn`. */
export interface BatchIn {
  readonly items: ReadonlyArray<JsonObject>;
}

/** The response to one item: its status code, and a proposal or a problem. */
export interface BatchItemOut {
  readonly status: number;
  readonly replayed?: boolean;
  readonly proposal?: ProposalOut | null;
  readonly problem?: JsonObject | null;
}

export interface BatchLineOut {
  readonly id: string;
  /** Warnings of any of its requests' pages. */
  readonly flags: ReadonlyArray<string>;
  readonly tool: string;
  readonly agent: string;
  readonly risk: string;
  readonly status: string;
  readonly expires_at: string | null;
}

export interface BatchMemberOut {
  readonly entry: EntryOut;
  readonly position: number;
  /** The effect as one sentence. */
  readonly title: string;
  /** Warnings, as on a row of the queue. */
  readonly flags: ReadonlyArray<string>;
  readonly tags: ReadonlyArray<TagOut>;
  /** Why this item differs from the others, as the page says it. */
  readonly stands_out: ReadonlyArray<string>;
  /** For whom it is, where it goes and what it costs, by the reader. */
  readonly facts: ReadonlyArray<FactOut>;
  /** The agent's words, not checked, redacted. */
  readonly rationale: string;
  readonly evidence: ReadonlyArray<EvidenceSummaryOut>;
  readonly args: JsonObject;
  readonly amount: string | null;
  readonly status: string;
  /** RFC 3339, in UTC with milliseconds: 2026-11-27T14:05:00.000Z */
  readonly expires_at: string;
  readonly why_not: string;
  readonly execution: string | null;
}

export interface BatchOut {
  readonly items: ReadonlyArray<BatchItemOut>;
}

export interface BatchesOut {
  readonly items: ReadonlyArray<BatchLineOut>;
  readonly next_cursor: string | null;
}

/**
 * The state before the effect, from the tool's reader and never from the agent.
 * Fields in `diff` are not repeated here.
 */
export interface BeforeOut {
  readonly known: boolean;
  /** Why the state is not known. */
  readonly problem: string;
  readonly source: string;
  readonly at: string;
  /** The fields that matter most. */
  readonly top: ReadonlyArray<RowOut>;
  readonly unchanged: ReadonlyArray<RowOut>;
  /** Fields that no argument concerns. */
  readonly now: ReadonlyArray<RowOut>;
}

/** One value as text. `kind` is its type in words. */
export interface CellOut {
  readonly text: string;
  readonly kind: string;
}

/** One field before and after; null where it has no value. */
export interface ChangeOut {
  /** `removed`, `changed` or `added`. */
  readonly kind: string;
  readonly label: string;
  readonly path: string;
  readonly before: CellOut | null;
  readonly after: CellOut | null;
}

/**
 * The agent's suspended state. People read the summary and the state, redacted. The
 * page shows three keys of the state apart from the rest: `goal`, `plan` (a list of
 * sentences or of `{"step", "state"}`) and `budget` (an object).
 */
export interface CheckpointIn {
  readonly summary?: string;
  readonly state?: JsonObject;
  readonly blob?: string | null;
  readonly resume_at?: string;
}

/**
 * One checkpoint. `blob` is base64, null when there is none or it was erased; its
 * digest stays.
 */
export interface CheckpointOut {
  readonly number: number;
  readonly proposal: string;
  readonly summary: string;
  readonly state: JsonObject;
  readonly blob: string | null;
  readonly blob_sha256: string | null;
  readonly resume_at: string;
  /** RFC 3339, in UTC with milliseconds: 2026-11-27T14:05:00.000Z */
  readonly created_at: string;
}

export interface ClaimOut {
  readonly heading: string;
  readonly text: string;
}

/**
 * Conditions of an approval. If one does not hold when the effect would begin, the
 * execution is refused. Those of all approvals apply together.
 */
export interface ConditionsIn {
  readonly not_before?: string | null;
  readonly not_after?: string | null;
  readonly expect?: ReadonlyArray<ExpectedIn>;
}

/** What all items together cost beside the amounts that they move. */
export interface CostOut {
  readonly label: string;
  readonly total: string;
  /** For how many items it is known. */
  readonly known: number;
}

/**
 * The money in one currency that an agent may move within 24 hours over all its
 * tools, and what is left of it now.
 */
export interface DailyMoneyOut {
  readonly currency: string;
  readonly limit: string;
  readonly left: string;
}

/**
 * How many actions an agent may propose within 24 hours, and how many are left
 * now.
 */
export interface DailyProposalsOut {
  readonly limit: number;
  readonly left: number;
}

/**
 * One verdict on an exact ordered list. `digest` is the SHA-256 of the RFC 8785
 * bytes of the items' `entry` in this order; `GET` returns it for any selection.
 */
export interface DecideBatchIn {
  readonly digest: string;
  readonly items: ReadonlyArray<string>;
  readonly left_out?: ReadonlyArray<string>;
  readonly verdict: "approve" | "reject" | "escalate";
  readonly reason_code?: string;
  readonly reason?: string;
  readonly stop_at_failure?: boolean;
}

/** A verdict on exactly the version and bytes that were shown. */
export interface DecideIn {
  readonly version: number;
  readonly action_hash: string;
  readonly verdict: "approve" | "reject" | "modify" | "escalate";
  /** The reason, as the agent receives it. Any other value is refused with 422 `reason`. approve: verified, other; modify: wrong_amount, wrong_target, unsafe, policy, other; reject: wrong_target, wrong_amount, not_needed, unsafe, policy, unclear, duplicate, skip, other; escalate: unsafe, policy, wrong_amount, unclear, other. `other` requires `reason`. */
  readonly reason_code?: string;
  readonly reason?: string;
  readonly args?: JsonObject | null;
  /** The request's `reading` that was shown. If it has changed since, the decision is refused with `precondition`. */
  readonly reading?: string;
  readonly conditions?: ConditionsIn | null;
  readonly password?: string;
  readonly one_time_code?: string;
}

/**
 * The verdict that settled the request. `final_args` are the arguments that were
 * decided on; `by_role` is a role, never a name.
 */
export interface DecisionOut {
  readonly verdict: "approve" | "reject" | "modify" | "escalate";
  readonly reason_code: string | null;
  readonly reason: string | null;
  readonly final_args: JsonObject;
  readonly by_role: string;
  /** RFC 3339, in UTC with milliseconds: 2026-11-27T14:05:00.000Z */
  readonly decided_at: string;
}

/** The denial that the access request answers, echoed from its decision. */
export interface DenialIn {
  readonly evaluation_id?: string | null;
  readonly expires_at: string;
  readonly binding_token?: string | null;
}

/** The tool's own preview of the effect. `problem` says why there is none. */
export interface DryRunOut {
  readonly rows: ReadonlyArray<RowOut>;
  readonly source: string;
  readonly at: string;
  readonly problem: string;
}

/** An edit of exactly the version and bytes that were shown. */
export interface EditIn {
  readonly version: number;
  readonly action_hash: string;
  readonly args: JsonObject;
}

/** What an edit would need. Nothing is decided, and no verifier is asked. */
export interface EditPreviewOut {
  readonly tier: string;
  readonly risk: string;
  readonly steps: ReadonlyArray<JsonObject>;
  /** The rules that apply only to the edit. */
  readonly rules: ReadonlyArray<string>;
  /** Whether the edit would also be your approval of what it makes. */
  readonly counts: boolean;
  /** Why the edit needs another person, such as `it raises the amount`. */
  readonly second_person: ReadonlyArray<string>;
  /** Whether it is more than you may decide. */
  readonly exceeds: boolean;
  readonly requires_reason: boolean;
  readonly step_up: boolean;
  /** What the request's page asks to be answered in writing, or empty. */
  readonly written_answer: string;
}

/** The call that the agent named as the parent, and that ended without running. */
export interface EndedParentOut {
  readonly proposal: string;
  /** `rejected`, `expired`, `withdrawn`, `superseded` or `blocked`. */
  readonly status: string;
  readonly at: string;
}

export interface EntryOut {
  readonly request: string;
  readonly version: number;
  readonly action_hash: string;
  readonly seal: string;
  readonly reading: string;
}

/** `POST /access/v1/evaluation`. */
export interface EvaluationIn {
  readonly subject: AccessSubject;
  readonly resource: AccessResource;
  readonly action: AccessAction;
  readonly context?: AccessContext;
}

/**
 * A decision. `context` of a denial says what to do next (`next_action`), that of a
 * permit carries the obligation to redeem the grant.
 */
export interface EvaluationOut {
  readonly decision: boolean;
  readonly context: JsonObject;
}

/** One piece of evidence: its kind, source, time and text, or a file. */
export interface Evidence {
  readonly kind: string;
  readonly source?: string;
  readonly text?: string;
  readonly at?: string;
  readonly file?: FileIn | null;
}

/**
 * A file as the gate holds it. `problem` says why people cannot see it; the hash
 * stays usable. `pictures` of `count` pages or frames, or some of `rows` and
 * `columns`, are shown. `sensitive`: it has what is hidden in any case.
 */
export interface EvidenceFileOut {
  readonly sha256: string;
  readonly media_type: string;
  readonly size: number;
  readonly problem: string;
  readonly sensitive: boolean;
  readonly pictures: number;
  readonly count: number;
  readonly rows: number;
  readonly columns: number;
}

/** One item of evidence, redacted. `withheld` says why it has no text. */
export interface EvidenceOut {
  readonly kind: string;
  readonly source: string;
  readonly at: string;
  readonly text: string;
  readonly withheld: string;
  readonly size: number;
  readonly redactions: number;
  readonly digest: string;
  readonly note: string;
  readonly file: ShownFileOut | null;
}

/** Where one item of evidence is from. Its text is on the request itself. */
export interface EvidenceSummaryOut {
  readonly kind: string;
  readonly source: string;
  readonly at: string;
  readonly digest: string;
}

/** The first cells of a table, redacted. */
export interface EvidenceTableOut {
  readonly columns: ReadonlyArray<string>;
  readonly rows: ReadonlyArray<ReadonlyArray<string>>;
}

/** The proposal's newest execution. */
export interface ExecutionOut {
  readonly id: string;
  readonly status: "queued" | "claimed" | "succeeded" | "failed" | "unknown" | "refused";
  readonly result: JsonObject | null;
  readonly code?: string | null;
  readonly detail?: string | null;
  readonly finished_at: string | null;
}

/**
 * A field of the tool's reading, and the value that it must have right before the
 * effect.
 */
export interface ExpectedIn {
  readonly field: string;
  readonly value: boolean | number | string | null;
}

/** A fact of the tool's reader that the policy puts on the page. */
export interface FactOut {
  readonly name: string;
  readonly label: string;
  readonly value: string;
}

/** How large the effect is, and for whom. */
export interface FigureOut {
  readonly label: string;
  readonly value: string;
  readonly note: string;
}

/**
 * A file that the agent has sent with `POST /evidence`. `sensitive` hides it from
 * reviewers until a person reveals it with a reason.
 */
export interface FileIn {
  readonly sha256: string;
  readonly name: string;
  readonly sensitive?: boolean;
}

export interface FileOut {
  readonly path: string;
  readonly was: string;
  readonly marks: ReadonlyArray<string>;
  readonly facts: ReadonlyArray<RowOut>;
  readonly added: number;
  readonly removed: number;
  readonly hunks: ReadonlyArray<HunkOut>;
}

export interface FinishIn {
  readonly result: ThreadResult;
}

/**
 * A one-use grant for the agent to redeem before `expires_at`, and not before
 * `not_before` if an approval says so.
 */
export interface GrantOut {
  readonly token: string;
  /** RFC 3339, in UTC with milliseconds: 2026-11-27T14:05:00.000Z */
  readonly expires_at: string;
  readonly not_before?: string | null;
}

export interface HunkOut {
  readonly title: string;
  readonly lines: ReadonlyArray<LineOut>;
}

/** A text inside a command: a heredoc, a `-c` string, a substitution. */
export interface InsideOut {
  readonly title: string;
  readonly text: string;
  readonly steps: ReadonlyArray<ProgramOut>;
  readonly problem: string;
}

/** One line of a file's diff, with its old and new line numbers. */
export interface LineOut {
  /** `same`, `removed`, `added` or `about`. */
  readonly kind: string;
  readonly old: number | null;
  readonly new: number | null;
  readonly text: string;
}

/**
 * `POST /proposals/{id}/messages`. `round` names what an answer answers. It may be
 * left out when only one question is unanswered.
 */
export interface MessageIn {
  readonly kind: "answer" | "question";
  readonly text: string;
  readonly round?: number | null;
}

/**
 * What a person or the agent said about the proposal, redacted. `from` is a
 * person's role, never a name, or `agent`. A question or guidance opens a round; an
 * answer has the round of its question.
 */
export interface MessageOut {
  readonly from: string;
  readonly kind: "question" | "guidance" | "answer";
  readonly text: string;
  /** RFC 3339, in UTC with milliseconds: 2026-11-27T14:05:00.000Z */
  readonly at: string;
  readonly round: number;
}

/** One field that changed since the previous version. */
export interface MovedOut {
  readonly label: string;
  readonly before: string | null;
  readonly after: string | null;
}

/**
 * The party for whom the agent acts. People whom `id` or `chain` names may not
 * decide the proposal. `properties` are what else the agent says about it; people read
 * them as not checked.
 */
export interface OnBehalfOf {
  readonly kind: "customer" | "user" | "agent" | "schedule";
  readonly id?: string;
  readonly chain?: ReadonlyArray<string>;
  readonly properties?: JsonObject;
}

/**
 * The outcome of an effect. `fence` and `action_hash` are those of the claim. A
 * result goes with `succeeded`, a code and a detail with `failed` and `unknown`.
 */
export interface OutcomeIn {
  readonly fence: number;
  readonly status: "succeeded" | "failed" | "unknown";
  readonly result?: JsonObject | null;
  readonly code?: string;
  readonly detail?: string;
  readonly action_hash: string;
}

/** The policy version that ruled on the action, and the rules that applied. */
export interface PolicyOut {
  readonly version: number | null;
  readonly rules: ReadonlyArray<RuleOut>;
}

/** One program of a command; `joined` says when it runs. */
export interface ProgramOut {
  readonly joined: string;
  readonly tokens: ReadonlyArray<TokenOut>;
}

/** `POST /proposals`. Only `thread`, `tool` and `args` are required. */
export interface ProposalIn {
  readonly args: JsonObject;
  readonly rationale?: string;
  readonly expected_outcome?: string;
  readonly reversal?: string;
  readonly alternatives?: ReadonlyArray<Alternative>;
  readonly uncertain?: boolean | number;
  readonly evidence?: ReadonlyArray<Evidence>;
  readonly checkpoint?: CheckpointIn | null;
  readonly preconditions?: JsonObject;
  readonly expires_in?: number | null;
  readonly thread: string;
  readonly tool: string;
  readonly on_behalf_of?: OnBehalfOf | null;
  readonly parent?: string;
  readonly supersedes?: string;
  readonly source?: string;
  readonly group?: string;
  readonly priority?: "low" | "normal" | "critical";
  readonly again?: boolean;
  readonly callback_url?: string | null;
  readonly traceparent?: string | null;
  readonly tool_description?: ToolDescriptionIn | null;
}

/**
 * A proposal, as every call that concerns one returns it. `outcome` is set once the
 * agent can act on the result: the id to acknowledge, unchanged until then.
 */
export interface ProposalOut {
  readonly id: string;
  readonly thread: string;
  readonly tool: string;
  readonly revision: number;
  readonly action_hash: string;
  readonly status: "blocked" | "pending" | "granted" | "executing" | "executed" | "failed" | "unknown" | "refused" | "rejected" | "expired" | "withdrawn" | "superseded";
  readonly risk: "low" | "medium" | "high" | "critical";
  readonly tier: "auto" | "notify" | "approve" | "escalate" | "block";
  readonly policy: PolicyOut;
  readonly request: RequestOut | null;
  readonly returned: boolean;
  readonly messages: ReadonlyArray<MessageOut>;
  readonly grant: GrantOut | null;
  readonly decision: DecisionOut | null;
  readonly execution: ExecutionOut | null;
  readonly outcome?: string | null;
  readonly acknowledged_at?: string | null;
  readonly may_have_run?: boolean;
  readonly joined?: number;
  readonly repeats?: string | null;
  readonly parent?: string | null;
  readonly source?: string | null;
  /** RFC 3339, in UTC with milliseconds: 2026-11-27T14:05:00.000Z */
  readonly created_at: string;
  readonly settled_at: string | null;
}

export interface ProposalPage {
  readonly items: ReadonlyArray<ProposalOut>;
  readonly next_cursor: string | null;
}

/**
 * `POST /questions`. `to` is a queue's name, or `@` and a person's login. `schema`
 * is a flat JSON Schema of the answer. `expires_in` is in seconds.
 */
export interface QuestionIn {
  readonly thread: string;
  readonly to: string;
  readonly text: string;
  readonly schema: JsonObject;
  readonly expires_in?: number;
}

/**
 * A question as its agent sees it. `answer` fits `schema` once the status is
 * `answered`; `note` is why a person declined. No person who answered is named.
 */
export interface QuestionOut {
  readonly id: string;
  readonly url: string;
  readonly thread: string;
  readonly to: string;
  readonly status: "open" | "answered" | "declined" | "expired" | "withdrawn";
  readonly text: string;
  readonly schema: JsonObject;
  /** RFC 3339, in UTC with milliseconds: 2026-11-27T14:05:00.000Z */
  readonly asked_at: string;
  /** RFC 3339, in UTC with milliseconds: 2026-11-27T14:05:00.000Z */
  readonly expires_at: string;
  readonly settled_at: string | null;
  readonly answer: JsonObject | null;
  readonly note: string;
}

export interface RedeemIn {
  readonly token: string;
}

/**
 * A claim: the action that the agent must perform, its fence, and the end of its
 * lease. `grant` is the signed token for the tool's service.
 */
export interface RedeemOut {
  readonly execution: string;
  readonly tool: string;
  readonly tool_version: number;
  readonly args: JsonObject;
  readonly preconditions: JsonObject;
  readonly action_hash: string;
  readonly idempotency_key: string;
  readonly fence: number;
  /** RFC 3339, in UTC with milliseconds: 2026-11-27T14:05:00.000Z */
  readonly lease_until: string;
  readonly grant: string;
}

export interface RequestDetailOut {
  readonly id: string;
  readonly proposal: string;
  /** Null without a parent, and while it may still run or has run. */
  readonly ended_parent: EndedParentOut | null;
  readonly agent: string;
  readonly thread: string;
  readonly tool: string;
  /** The effect as one sentence. */
  readonly title: string;
  /** Warnings, as on a row of the queue. */
  readonly flags: ReadonlyArray<string>;
  readonly status: string;
  readonly version: number;
  readonly action_hash: string;
  readonly seal: string;
  readonly tier: string;
  readonly risk: string;
  readonly queue: string;
  /** RFC 3339, in UTC with milliseconds: 2026-11-27T14:05:00.000Z */
  readonly opened_at: string;
  /** RFC 3339, in UTC with milliseconds: 2026-11-27T14:05:00.000Z */
  readonly expires_at: string;
  readonly settled_at: string | null;
  readonly steps: ReadonlyArray<RequestStepOut>;
  /** How many later calls proposed the same action while it was open. */
  readonly joined: number;
  readonly requires_reason: boolean;
  readonly step_up: boolean;
  /** Digest of the business state at the last reading. */
  readonly reading: string;
  /** A chip replaces each value that the schema marks as sensitive. */
  readonly args: JsonObject;
  readonly rules: ReadonlyArray<Readonly<Record<string, string>>>;
  /** Whether an approval by you would be accepted and count now. If not, `why_not` says why. */
  readonly can_decide: boolean;
  readonly why_not: string;
  /** The verdicts that would be accepted from you now. Above your own ceiling you may still modify, reject and escalate. Escalation is left out if nobody could decide the escalated request. */
  readonly verdicts: ReadonlyArray<string>;
  readonly tags: ReadonlyArray<TagOut>;
  readonly size: ReadonlyArray<FigureOut>;
  readonly before: BeforeOut;
  readonly diff: ReadonlyArray<ChangeOut>;
  readonly views: ReadonlyArray<ViewOut>;
  /** Arguments that do not change a field. */
  readonly other: ReadonlyArray<RowOut>;
  readonly uninspectable: ReadonlyArray<UninspectableOut>;
  readonly dry_run: DryRunOut | null;
  readonly reversal: ReversalOut;
  /** The agent's words, not checked, redacted. */
  readonly rationale: string;
  /** The agent's other statements. */
  readonly claims: ReadonlyArray<ClaimOut>;
  /** RFC 3339, in UTC with milliseconds: 2026-11-27T14:05:00.000Z */
  readonly said_at: string;
  /** The version it was written for, if another. */
  readonly written_for: string;
  /** From outside, not checked. */
  readonly evidence: ReadonlyArray<EvidenceOut>;
  readonly since: SinceOut | null;
  readonly policy: number;
  /** `second_person`: an edit that raises an amount, or changes the currency, a key or whom the effect reaches, is decided by another person than its editor. `alone`: the policy does not ask for one. */
  readonly edit: string;
  /** How many people of the queue may not decide by the agent's claims. */
  readonly barred_by_claims: number;
  /** Whether the page asks you a question about this request before it takes your approval. This call asks none: a program that shows the request to a person sends them to the page instead. */
  readonly attention_check: boolean;
  /** Since when it is with its agent for revision; it can be decided. */
  readonly returned_at: string | null;
  readonly messages: ReadonlyArray<RequestMessageOut>;
}

export interface RequestLineOut {
  readonly id: string;
  readonly proposal: string;
  /** Null without a parent, and while it may still run or has run. */
  readonly ended_parent: EndedParentOut | null;
  readonly agent: string;
  readonly thread: string;
  readonly tool: string;
  /** The effect as one sentence. */
  readonly title: string;
  /** Warnings, as on a row of the queue. */
  readonly flags: ReadonlyArray<string>;
  readonly status: string;
  readonly version: number;
  readonly action_hash: string;
  readonly seal: string;
  readonly tier: string;
  readonly risk: string;
  readonly queue: string;
  /** RFC 3339, in UTC with milliseconds: 2026-11-27T14:05:00.000Z */
  readonly opened_at: string;
  /** RFC 3339, in UTC with milliseconds: 2026-11-27T14:05:00.000Z */
  readonly expires_at: string;
  readonly settled_at: string | null;
  readonly steps: ReadonlyArray<RequestStepOut>;
  /** How many later calls proposed the same action while it was open. */
  readonly joined: number;
  readonly requires_reason: boolean;
  readonly step_up: boolean;
  /** Digest of the business state at the last reading. */
  readonly reading: string;
  /** A chip replaces each value that the schema marks as sensitive. */
  readonly args: JsonObject;
  readonly rules: ReadonlyArray<Readonly<Record<string, string>>>;
  /** Whether an approval by you would be accepted and count now. If not, `why_not` says why. */
  readonly can_decide: boolean;
  readonly why_not: string;
  /** The verdicts that would be accepted from you now. Above your own ceiling you may still modify, reject and escalate. Escalation is left out if nobody could decide the escalated request. */
  readonly verdicts: ReadonlyArray<string>;
}

/**
 * A message to the agent about exactly the version that was shown. `send_back`
 * returns the request to its agent for revision.
 */
export interface RequestMessageIn {
  readonly kind: "question" | "answer" | "send_back";
  readonly version: number;
  readonly text: string;
  readonly round?: number | null;
}

/** What a person or the agent said about the request. It decides nothing. */
export interface RequestMessageOut {
  /** A person's role, or `agent`: then not checked. */
  readonly from: string;
  /** `question`, `answer` or `guidance`. */
  readonly kind: string;
  readonly text: string;
  /** RFC 3339, in UTC with milliseconds: 2026-11-27T14:05:00.000Z */
  readonly at: string;
  /** An answer has the round of its question. */
  readonly round: number;
}

/** The approval request: its page for people, its version and its deadline. */
export interface RequestOut {
  readonly id: string;
  readonly url: string;
  readonly version: number;
  /** RFC 3339, in UTC with milliseconds: 2026-11-27T14:05:00.000Z */
  readonly expires_at: string;
  readonly steps: ReadonlyArray<StepOut>;
}

export interface RequestPage {
  readonly items: ReadonlyArray<RequestLineOut>;
  /** Send it as `cursor` for the next page; null on the last page. */
  readonly next_cursor: string | null;
}

/** The states of an approval request; docs/states.md has their transitions. */
export type RequestStatus = "pending" | "recallable" | "authorized" | "rejected" | "expired" | "withdrawn" | "superseded";

export interface RequestStepOut {
  readonly role: string;
  readonly required: number;
  readonly given: number;
}

/** `emergency` puts the request first in its risk band; it changes no authority. */
export interface RequestedAccess {
  readonly emergency?: boolean;
}

/** The run's latest checkpoint, and in `outcome` the proposal that it waited for. */
export interface ResumeOut {
  readonly thread: string;
  readonly status: string;
  readonly checkpoint: CheckpointOut | null;
  readonly outcome: ProposalOut | null;
  readonly acknowledged: boolean;
}

/** How the effect can be undone, as the tool declares it. */
export interface ReversalOut {
  readonly word: string;
  readonly undo: string;
  readonly stays: string;
  readonly check: string;
}

/** `POST /proposals/{id}/revisions`. The tool and the thread cannot change. */
export interface RevisionIn {
  readonly args: JsonObject;
  readonly rationale?: string;
  readonly expected_outcome?: string;
  readonly reversal?: string;
  readonly alternatives?: ReadonlyArray<Alternative>;
  readonly uncertain?: boolean | number;
  readonly evidence?: ReadonlyArray<Evidence>;
  readonly checkpoint?: CheckpointIn | null;
  readonly preconditions?: JsonObject;
  readonly expires_in?: number | null;
}

/** A value with its label. `note` and `warns` are Counterseal's own words. */
export interface RowOut {
  readonly label: string;
  readonly path: string;
  readonly cell: CellOut;
  readonly note: string;
  readonly warns: ReadonlyArray<string>;
  readonly also: string;
}

export interface RuleOut {
  readonly id: string;
  readonly text: string;
}

/**
 * A file of the evidence. `why_not` says why nobody is shown it unasked; `notes`
 * say how much of it is shown. Its pictures are on the request's page.
 */
export interface ShownFileOut {
  readonly name: string;
  readonly media_type: string;
  readonly size: number;
  readonly sha256: string;
  readonly sensitive: boolean;
  readonly why_not: string;
  readonly notes: ReadonlyArray<string>;
  readonly table: EvidenceTableOut | null;
}

/**
 * What changed since the previous version. `words` says whether the agent's text
 * changed too.
 */
export interface SinceOut {
  readonly version: number;
  readonly cause: string;
  readonly diff: ReadonlyArray<MovedOut>;
  readonly words: boolean;
}

/**
 * Allow the calls of the request's tool in its run in advance, within the terms of
 * the policy. The request itself stays open.
 */
export interface StandingGrantIn {
  readonly reason: string;
}

/**
 * A standing grant. `in_force` is false once it is revoked, has expired, or all its
 * uses are taken.
 */
export interface StandingGrantOut {
  readonly id: string;
  readonly tool: string;
  readonly agent: string;
  readonly thread: string;
  readonly request: string;
  /** Who issued it. */
  readonly issued_by: string;
  readonly reason: string;
  /** RFC 3339, in UTC with milliseconds: 2026-11-27T14:05:00.000Z */
  readonly issued_at: string;
  /** RFC 3339, in UTC with milliseconds: 2026-11-27T14:05:00.000Z */
  readonly expires_at: string;
  readonly revoked_at: string | null;
  readonly uses: number;
  /** The most uses it allows. */
  readonly budget: number;
  readonly in_force: boolean;
  /** Whether this person may revoke it now. */
  readonly can_revoke: boolean;
}

export interface StandingGrantsOut {
  readonly items: ReadonlyArray<StandingGrantOut>;
  readonly next_cursor: string | null;
}

/**
 * One step of a request: a role, how many of its people must approve, and how many
 * have.
 */
export interface StepOut {
  readonly role: string;
  readonly required: number;
  readonly given: number;
}

/** A fact that Counterseal computed. `loud` marks a warning. */
export interface TagOut {
  readonly text: string;
  readonly loud: boolean;
}

/** A task handle. `id` is the proposal's id. */
export interface TaskOut {
  readonly id: string;
  readonly status: "pending" | "approved" | "denied" | "expired" | "cancelled";
  readonly status_endpoint: string;
  readonly expires_at?: string | null;
  readonly progress?: TaskProgress | null;
  readonly display: Readonly<Record<string, string>>;
  readonly links?: Readonly<Record<string, string>> | null;
}

/** The first step of the request that still lacks approvals, counted from 1. */
export interface TaskProgress {
  readonly current_step: number;
  readonly total_steps: number;
  readonly step_name: string;
}

/** The answer about an access request. `result` goes with `approved`. */
export interface TaskResponse {
  readonly task: TaskOut;
  readonly result?: JsonObject | null;
}

export interface ThreadOut {
  readonly thread: string;
  readonly status: string;
  readonly result: string;
}

/** How a run ended, as its agent reports it. */
export type ThreadResult = "completed" | "gave_up" | "failed";

/** One word of a command. `declared` is the reader's own text, not checked. */
export interface TokenOut {
  readonly text: string;
  readonly means: string;
  readonly warns: ReadonlyArray<string>;
  readonly declared: string;
}

/**
 * What the agent says of the tool: a text, and a JSON Schema of the arguments. Both
 * count only while the policy does not declare the tool: people read them as the
 * agent's words.
 */
export interface ToolDescriptionIn {
  readonly text?: string;
  readonly schema?: JsonObject;
}

/**
 * A tool that the agent may propose. `schema` is the JSON Schema of its arguments,
 * `tier` the authority that it needs before the policy's classes and rules apply.
 */
export interface ToolOut {
  readonly name: string;
  readonly version: number;
  readonly title: string;
  readonly description: string;
  readonly schema: JsonObject;
  readonly risk: string;
  readonly tier: string;
  readonly requires_reason: boolean;
}

/** An argument that cannot be shown in full, and why. */
export interface UninspectableOut {
  readonly label: string;
  readonly path: string;
  readonly reason: string;
}

/**
 * One part of a tool's own view: rows under a heading, a command as steps, or files
 * line by line.
 */
export interface ViewOut {
  readonly title: string;
  readonly note?: string;
  readonly problem?: string;
  readonly rows?: ReadonlyArray<RowOut>;
  readonly steps?: ReadonlyArray<ProgramOut>;
  readonly inside?: ReadonlyArray<InsideOut>;
  readonly files?: ReadonlyArray<FileOut>;
}

/**
 * IDs and facts of the event. `outcome` is the id to acknowledge, null while the
 * agent cannot act on the result.
 */
export interface WebhookEventData {
  readonly outcome: string | null;
  readonly proposal: string;
  readonly thread: string;
  readonly tool: string;
  readonly revision: number;
  readonly action_hash: string;
  readonly status: "blocked" | "pending" | "granted" | "executing" | "executed" | "failed" | "unknown" | "refused" | "rejected" | "expired" | "withdrawn" | "superseded";
  readonly request: WebhookEventRequest | null;
  readonly decision: WebhookEventDecision | null;
  readonly execution: WebhookEventExecution | null;
  readonly round?: number | null;
  readonly may_have_run?: boolean;
}

export interface WebhookEventDecision {
  readonly verdict: "approve" | "reject" | "modify" | "escalate";
  readonly reason_code: string | null;
  readonly by_role: string;
  /** RFC 3339, in UTC with milliseconds: 2026-11-27T14:05:00.000Z */
  readonly decided_at: string;
}

export interface WebhookEventExecution {
  readonly id: string;
  readonly status: "queued" | "claimed" | "succeeded" | "failed" | "unknown" | "refused";
  readonly code: string | null;
}

/** A webhook event, in the form of Standard Webhooks. */
export interface WebhookEventOut {
  readonly type: "proposal.settled" | "proposal.executed" | "request.opened" | "request.escalated" | "request.asked" | "request.answered" | "request.sent_back" | "execution.unknown";
  /** RFC 3339, in UTC with milliseconds: 2026-11-27T14:05:00.000Z */
  readonly timestamp: string;
  readonly data: WebhookEventData;
}

export interface WebhookEventRequest {
  readonly id: string;
  readonly version: number;
}

/**
 * The agent that a key belongs to. `state` is "running", "paused" or "stopped". A
 * limit is null where the agent has none; with `daily_money`, a currency that it does
 * not list cannot be moved.
 */
export interface WhoamiOut {
  readonly agent: string;
  readonly name: string;
  readonly version: string;
  readonly tools: ReadonlyArray<string>;
  readonly risk_ceiling: string;
  readonly scopes: ReadonlyArray<string>;
  readonly state: string;
  readonly daily_proposals: DailyProposalsOut | null;
  readonly daily_money: ReadonlyArray<DailyMoneyOut> | null;
}

/** What each operation takes and answers. */
export interface Operations {
  /**
   * Propose one action. A repeated call with the same `Idempotency-Key` and body
   * returns the first response again, with status 200 and `Idempotent-Replayed: true`;
   * a blocked call is judged again once the policy or the agent's permissions have
   * changed. With `wait` (seconds) the call returns as soon as the agent can act on the
   * result, at the latest after that time.
   */
  readonly agents_api_propose: {
    readonly path: Readonly<Record<string, never>>;
    readonly query: {
      readonly wait?: number;
    };
    readonly body: ProposalIn;
    readonly answer: ProposalOut;
  };
  /**
   * List this agent's proposals, newest first, optionally filtered by status or
   * thread. Pass `next_cursor` as `cursor` to get the next page.
   */
  readonly agents_api_list_proposals: {
    readonly path: Readonly<Record<string, never>>;
    readonly query: {
      readonly status?: string;
      readonly thread?: string;
      readonly cursor?: string;
    };
    readonly body: undefined;
    readonly answer: ProposalPage;
  };
  /**
   * Propose up to 200 actions. Each has its own transaction, `idempotency_key`,
   * status and response.
   */
  readonly agents_api_propose_batch: {
    readonly path: Readonly<Record<string, never>>;
    readonly query: Readonly<Record<string, never>>;
    readonly body: BatchIn;
    readonly answer: BatchOut;
  };
  /**
   * Get one proposal. With `wait` (seconds) the call returns as soon as the agent can
   * act on the result, at the latest after that time.
   */
  readonly agents_api_get_proposal: {
    readonly path: {
      readonly proposal_id: string;
    };
    readonly query: {
      readonly wait?: number;
    };
    readonly body: undefined;
    readonly answer: ProposalOut;
  };
  /**
   * Revise a proposal. The previous revision is kept; the votes on it no longer
   * count.
   */
  readonly agents_api_revise: {
    readonly path: {
      readonly proposal_id: string;
    };
    readonly query: Readonly<Record<string, never>>;
    readonly body: RevisionIn;
    readonly answer: ProposalOut;
  };
  /**
   * Answer a reviewer's question about a pending proposal, or ask the reviewers one.
   * The text is redacted like every text of an agent. Both sides may open a few rounds
   * each; then 409 `rounds`. An answer that nobody waits for is 409 `no_question`. A
   * repeated call with the same `Idempotency-Key` and body returns the first response
   * again, with `Idempotent-Replayed: true`.
   */
  readonly agents_api_send_message: {
    readonly path: {
      readonly proposal_id: string;
    };
    readonly query: Readonly<Record<string, never>>;
    readonly body: MessageIn;
    readonly answer: ProposalOut;
  };
  /**
   * Withdraw a proposal. Its open request is closed, and an unused grant is
   * revoked.
   */
  readonly agents_api_withdraw: {
    readonly path: {
      readonly proposal_id: string;
    };
    readonly query: Readonly<Record<string, never>>;
    readonly body: undefined;
    readonly answer: ProposalOut;
  };
  /**
   * Acknowledge an outcome, so that it is not offered or sent again. A repeated call
   * changes nothing.
   */
  readonly agents_api_acknowledge: {
    readonly path: {
      readonly proposal_id: string;
    };
    readonly query: Readonly<Record<string, never>>;
    readonly body: AcknowledgeIn;
    readonly answer: ProposalOut;
  };
  /**
   * Send one file as the body, with its type as `Content-Type`. A repeated call with
   * the same bytes answers 200. A proposal names the file by the `sha256` of the answer;
   * a file that none has named for a day is deleted. A file that is damaged, protected
   * or too large to draw is stored, and `problem` says why people cannot see it.
   */
  readonly agents_api_upload_evidence: {
    readonly path: Readonly<Record<string, never>>;
    readonly query: Readonly<Record<string, never>>;
    readonly body: string;
    readonly answer: EvidenceFileOut;
  };
  /**
   * Redeem the one-use grant of an action that the agent performs itself. `grant` in
   * the response is for the tool's service, which verifies it with the keys at
   * `/.well-known/jwks.json`. A repeated call with the same `Idempotency-Key` returns
   * the same claim, with `Idempotent-Replayed: true`, until the lease ends. Without a
   * key, or with another one, a grant can be redeemed only once.
   */
  readonly agents_api_redeem: {
    readonly path: Readonly<Record<string, never>>;
    readonly query: Readonly<Record<string, never>>;
    readonly body: RedeemIn;
    readonly answer: RedeemOut;
  };
  /**
   * Report the outcome of an effect that the agent performed. `fence` and
   * `action_hash` must be those of the claim.
   */
  readonly agents_api_report_outcome: {
    readonly path: {
      readonly execution_id: string;
    };
    readonly query: Readonly<Record<string, never>>;
    readonly body: OutcomeIn;
    readonly answer: ProposalOut;
  };
  /**
   * Put a question to a queue or to one person, with a form for the answer. It
   * authorizes nothing. A repeated call with the same `Idempotency-Key` and body returns
   * the same question, with status 200 and `Idempotent-Replayed: true`. With `wait`
   * (seconds) the call returns as soon as the question is answered, declined, expired or
   * withdrawn, at the latest after that time.
   */
  readonly agents_api_ask_question: {
    readonly path: Readonly<Record<string, never>>;
    readonly query: {
      readonly wait?: number;
    };
    readonly body: QuestionIn;
    readonly answer: QuestionOut;
  };
  /**
   * Get one question. With `wait` (seconds) the call returns as soon as the question
   * is answered, declined, expired or withdrawn, at the latest after that time.
   */
  readonly agents_api_get_question: {
    readonly path: {
      readonly question_id: string;
    };
    readonly query: {
      readonly wait?: number;
    };
    readonly body: undefined;
    readonly answer: QuestionOut;
  };
  /** Withdraw an open question. Nobody is asked any more. */
  readonly agents_api_withdraw_question: {
    readonly path: {
      readonly question_id: string;
    };
    readonly query: Readonly<Record<string, never>>;
    readonly body: undefined;
    readonly answer: QuestionOut;
  };
  /**
   * Get a run's latest checkpoint, and the proposal that it waited for with its
   * outcome. `acknowledged` is true when the agent has acknowledged that outcome.
   */
  readonly agents_api_resume: {
    readonly path: {
      readonly thread: string;
    };
    readonly query: Readonly<Record<string, never>>;
    readonly body: undefined;
    readonly answer: ResumeOut;
  };
  /**
   * Finish a run. Its open requests are withdrawn and its unredeemed grants revoked.
   * Finishing it again with the same result returns the same response.
   */
  readonly agents_api_finish: {
    readonly path: {
      readonly thread: string;
    };
    readonly query: Readonly<Record<string, never>>;
    readonly body: FinishIn;
    readonly answer: ThreadOut;
  };
  /**
   * List the tools that this agent may propose, with the JSON Schema of their
   * arguments.
   */
  readonly agents_api_list_tools: {
    readonly path: Readonly<Record<string, never>>;
    readonly query: Readonly<Record<string, never>>;
    readonly body: undefined;
    readonly answer: ReadonlyArray<ToolOut>;
  };
  /**
   * Get the agent that this key belongs to, the key's scopes, and whether the agent
   * is running, paused or stopped.
   */
  readonly agents_api_whoami: {
    readonly path: Readonly<Record<string, never>>;
    readonly query: Readonly<Record<string, never>>;
    readonly body: undefined;
    readonly answer: WhoamiOut;
  };
  /** List the requests that this person may see, earliest deadline first. */
  readonly reviews_api_list_requests: {
    readonly path: Readonly<Record<string, never>>;
    readonly query: {
      readonly status?: "pending" | "recallable" | "authorized" | "rejected" | "expired" | "withdrawn" | "superseded";
      readonly agent?: string;
      readonly tool?: string;
      readonly limit?: number;
      readonly cursor?: string;
    };
    readonly body: undefined;
    readonly answer: RequestPage;
  };
  /** Return one request. Returns 404 if this person may not see it. */
  readonly reviews_api_get_request: {
    readonly path: {
      readonly request_id: string;
    };
    readonly query: Readonly<Record<string, never>>;
    readonly body: undefined;
    readonly answer: RequestDetailOut;
  };
  /**
   * Record a verdict on one request. The same call again, by the same person, changes
   * nothing and is answered with the request as it is now; an edit is refused then.
   */
  readonly reviews_api_decide: {
    readonly path: {
      readonly request_id: string;
    };
    readonly query: Readonly<Record<string, never>>;
    readonly body: DecideIn;
    readonly answer: RequestDetailOut;
  };
  /**
   * Say what an edit would need before it is decided with `modify`. Refused as the
   * edit itself would be.
   */
  readonly reviews_api_preview_edit: {
    readonly path: {
      readonly request_id: string;
    };
    readonly query: Readonly<Record<string, never>>;
    readonly body: EditIn;
    readonly answer: EditPreviewOut;
  };
  /**
   * Ask the agent, answer its question, or send the request back to it for revision.
   * Only a person who may decide the request may do so; nothing is decided, and the
   * deadline stands. Refused with 409 `rounds` when the request has no round left,
   * `unanswered` while the agent has not answered your last question, `returned` while
   * it is with its agent, and `no_question` for an answer that nobody waits for.
   */
  readonly reviews_api_write_to_agent: {
    readonly path: {
      readonly request_id: string;
    };
    readonly query: Readonly<Record<string, never>>;
    readonly body: RequestMessageIn;
    readonly answer: RequestDetailOut;
  };
  /**
   * List the pending batches in this person's queues, in the order in which they
   * formed, then those decided within the last week, newest first.
   */
  readonly reviews_batch_api_list_batches: {
    readonly path: Readonly<Record<string, never>>;
    readonly query: {
      readonly limit?: number;
      readonly cursor?: string;
    };
    readonly body: undefined;
    readonly answer: BatchesOut;
  };
  /**
   * Return one batch with its members in order, and the digest and the sums of the
   * list without the members in `leave_out`.
   */
  readonly reviews_batch_api_get_batch: {
    readonly path: {
      readonly batch_id: string;
    };
    readonly query: {
      readonly leave_out?: ReadonlyArray<string>;
    };
    readonly body: undefined;
    readonly answer: BatchDetailOut;
  };
  /**
   * Record one verdict on every item of the list. If one item is refused, none is
   * recorded.
   */
  readonly reviews_batch_api_decide_batch: {
    readonly path: {
      readonly batch_id: string;
    };
    readonly query: Readonly<Record<string, never>>;
    readonly body: DecideBatchIn;
    readonly answer: BatchDetailOut;
  };
  /**
   * List the standing grants of this person's queues, newest first; all of them for
   * people who see everything.
   */
  readonly reviews_api_list_standing_grants: {
    readonly path: Readonly<Record<string, never>>;
    readonly query: {
      readonly limit?: number;
      readonly cursor?: string;
    };
    readonly body: undefined;
    readonly answer: StandingGrantsOut;
  };
  /**
   * Issue a standing grant from a pending request that this person may decide. 409
   * says what does not allow one: the policy, the request, a stop, or a standing grant
   * that is in force already.
   */
  readonly reviews_api_create_standing_grant: {
    readonly path: {
      readonly request_id: string;
    };
    readonly query: Readonly<Record<string, never>>;
    readonly body: StandingGrantIn;
    readonly answer: StandingGrantOut;
  };
  /**
   * End a standing grant at once. An execution that took a use and has not begun is
   * refused. 409 `conflict` when it was revoked before.
   */
  readonly reviews_api_revoke_standing_grant: {
    readonly path: {
      readonly grant_id: string;
    };
    readonly query: Readonly<Record<string, never>>;
    readonly body: undefined;
    readonly answer: StandingGrantOut;
  };
  /**
   * Evaluate whether the subject may perform the action on the resource. Without an
   * approval in the context the decision is a denial; `context.access_request` says that
   * an approval can be requested. With one, the decision is a permit for exactly what
   * was approved. An evaluation changes nothing.
   */
  readonly agents_adapters_evaluate_access: {
    readonly path: Readonly<Record<string, never>>;
    readonly query: Readonly<Record<string, never>>;
    readonly body: EvaluationIn;
    readonly answer: EvaluationOut;
  };
  /**
   * Request the approval of what an evaluation denied. The answer is 202 while people
   * decide, and 201 when the policy has decided at once. A repeated call with the same
   * `Idempotency-Key` and body returns the same task, with `Idempotent-Replayed: true`;
   * with another body it is refused with 409.
   */
  readonly agents_adapters_request_access: {
    readonly path: Readonly<Record<string, never>>;
    readonly query: Readonly<Record<string, never>>;
    readonly body: AccessRequestIn;
    readonly answer: TaskResponse;
  };
  /** Get the task of an access request. `Retry-After` says when to ask again. */
  readonly agents_adapters_get_task: {
    readonly path: {
      readonly task_id: string;
    };
    readonly query: Readonly<Record<string, never>>;
    readonly body: undefined;
    readonly answer: TaskResponse;
  };
  /** Cancel a pending access request. A settled one is refused with 409. */
  readonly agents_adapters_cancel_task: {
    readonly path: {
      readonly task_id: string;
    };
    readonly query: Readonly<Record<string, never>>;
    readonly body: undefined;
    readonly answer: TaskResponse;
  };
}

/** Method and path of each operation. */
export const ROUTES = {
  agents_api_propose: ["POST", "/api/v1/proposals"],
  agents_api_list_proposals: ["GET", "/api/v1/proposals"],
  agents_api_propose_batch: ["POST", "/api/v1/proposals/batch"],
  agents_api_get_proposal: ["GET", "/api/v1/proposals/{proposal_id}"],
  agents_api_revise: ["POST", "/api/v1/proposals/{proposal_id}/revisions"],
  agents_api_send_message: ["POST", "/api/v1/proposals/{proposal_id}/messages"],
  agents_api_withdraw: ["POST", "/api/v1/proposals/{proposal_id}/withdraw"],
  agents_api_acknowledge: ["POST", "/api/v1/proposals/{proposal_id}/acknowledge"],
  agents_api_upload_evidence: ["POST", "/api/v1/evidence"],
  agents_api_redeem: ["POST", "/api/v1/grants/redeem"],
  agents_api_report_outcome: ["POST", "/api/v1/executions/{execution_id}/outcome"],
  agents_api_ask_question: ["POST", "/api/v1/questions"],
  agents_api_get_question: ["GET", "/api/v1/questions/{question_id}"],
  agents_api_withdraw_question: ["POST", "/api/v1/questions/{question_id}/withdraw"],
  agents_api_resume: ["GET", "/api/v1/threads/{thread}/checkpoint"],
  agents_api_finish: ["POST", "/api/v1/threads/{thread}/finish"],
  agents_api_list_tools: ["GET", "/api/v1/tools"],
  agents_api_whoami: ["GET", "/api/v1/whoami"],
  reviews_api_list_requests: ["GET", "/api/v1/requests"],
  reviews_api_get_request: ["GET", "/api/v1/requests/{request_id}"],
  reviews_api_decide: ["POST", "/api/v1/requests/{request_id}/decide"],
  reviews_api_preview_edit: ["POST", "/api/v1/requests/{request_id}/preview"],
  reviews_api_write_to_agent: ["POST", "/api/v1/requests/{request_id}/messages"],
  reviews_batch_api_list_batches: ["GET", "/api/v1/batches"],
  reviews_batch_api_get_batch: ["GET", "/api/v1/batches/{batch_id}"],
  reviews_batch_api_decide_batch: ["POST", "/api/v1/batches/{batch_id}/decide"],
  reviews_api_list_standing_grants: ["GET", "/api/v1/standing-grants"],
  reviews_api_create_standing_grant: ["POST", "/api/v1/requests/{request_id}/standing-grant"],
  reviews_api_revoke_standing_grant: ["POST", "/api/v1/standing-grants/{grant_id}/revoke"],
  agents_adapters_evaluate_access: ["POST", "/access/v1/evaluation"],
  agents_adapters_request_access: ["POST", "/access/v1/requests"],
  agents_adapters_get_task: ["GET", "/access/v1/requests/{task_id}"],
  agents_adapters_cancel_task: ["POST", "/access/v1/requests/{task_id}/cancel"],
} as const satisfies Record<
  keyof Operations,
  readonly [string, string]
>;
