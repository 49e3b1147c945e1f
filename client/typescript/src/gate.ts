// One agent's connection to Counterseal: every operation of the API for agents.

import type {
  Evidence,
  JsonObject,
  OutcomeIn,
  ProposalIn,
  ProposalPage,
  QuestionOut,
  RedeemOut,
  ResumeOut,
  RevisionIn,
  ThreadOut,
  ThreadResult,
  ToolOut,
  WhoamiOut,
} from "./api.ts";
import { Connection, LONGEST_HOLD, checkAnswer } from "./calls.ts";
import type { ConnectionOptions } from "./calls.ts";
import { QuestionEnded, isObject } from "./errors.ts";
import { InvalidGrant, verifyGrant } from "./grants.ts";
import type { VerifiedGrant } from "./grants.ts";
import { isNews } from "./proposals.ts";
import type { Proposal } from "./proposals.ts";

/**
 * A redeemed grant: perform `args` under `idempotency_key`, then report the outcome with
 * the same `fence` before `lease_until`. Pass `grant` and `preconditions` to a service
 * that verifies grants itself.
 */
export type Claim = RedeemOut;

/** The optional fields of a proposal. */
export type Details = Omit<ProposalIn, "thread" | "tool" | "args">;

/** What happened: a result goes with `succeeded`, a code and a detail with the others. */
export type Outcome = Pick<OutcomeIn, "status" | "result" | "code" | "detail">;

/** Under which key a call is sent; a fresh one if none is given. */
export interface KeyOption {
  readonly idempotencyKey?: string;
}

/**
 * The checkpoint of a thread and the proposal that it waits for. `due` is the outcome to
 * act on, null while there is none and once it is acknowledged.
 */
export interface ThreadState extends ResumeOut {
  readonly due: Proposal | null;
}

/**
 * Seconds. Counterseal did not hold a call that returned sooner without news, so `wait`
 * pauses for as long instead of calling in a tight loop.
 */
export const QUICK = 0.5;

/**
 * Seconds. Nothing wakes a held call when a lease ends, after which a dead attempt may be
 * repeated, so `wait` looks again while an effect is under way.
 */
const LEASE_HOLD = 5;

const DAY = 24 * 3600; // seconds

/**
 * One agent's connection to Counterseal. After the retries of `backoff`, each method
 * throws ApiError when Counterseal refuses the call, Unreachable when Counterseal does not
 * respond, and InvalidAnswer when the response is not the gate's.
 */
export class Gate {
  readonly connection: Connection;
  #keys: JsonObject | null = null;

  constructor(url: string, key: string, options: ConnectionOptions = {}) {
    this.connection = new Connection(url, key, options);
  }

  /**
   * Propose one action. Pass a key that you can build again after a crash: the same key
   * and body always return the same proposal. With `wait` (seconds) the call returns as
   * soon as the proposal is final, at the latest after that time.
   */
  async propose(
    proposal: ProposalIn,
    options: KeyOption & { readonly wait?: number } = {},
  ): Promise<Proposal> {
    const { idempotencyKey, wait: hold } = options;
    const given = { body: proposal, idempotencyKey: chooseKey(idempotencyKey) };
    return checkProposal(
      await this.connection.call("agents_api_propose", { ...given, hold: hold ?? 0 }),
    );
  }

  /**
   * Send a file, and return the item of evidence that names it. The gate stores equal bytes
   * once, so the call may be repeated.
   */
  async sendFile(
    body: Uint8Array<ArrayBuffer>,
    file: { name: string; mediaType: string; kind?: string; source?: string; sensitive?: boolean },
  ): Promise<Evidence> {
    const id = "agents_api_upload_evidence";
    const answer = await this.connection.upload(id, body, file.mediaType);
    checkAnswer(answer, "file", ["sha256"]);
    const { sha256 } = answer;
    const { name, kind = "file", source = "", sensitive = false } = file;
    return { kind, source, file: { sha256, name, sensitive } };
  }

  /** Revise a proposal. The votes given so far no longer count. */
  async revise(id: string, revision: RevisionIn, options: KeyOption = {}): Promise<Proposal> {
    return checkProposal(
      await this.connection.call("agents_api_revise", {
        path: { proposal_id: id },
        body: revision,
        idempotencyKey: chooseKey(options.idempotencyKey),
      }),
    );
  }

  /** Return the current proposal. */
  async get(id: string): Promise<Proposal> {
    return this.#lookUp(id, 0);
  }

  /**
   * Wait for a final status, a grant to redeem, or a new message. Returns the current
   * proposal after `seconds` at the latest; without them it waits until the request
   * ends, which it does at its deadline. Waiting occupies no worker of Counterseal, so you
   * can wait for long, and again later or from another process.
   */
  async wait(id: string, seconds = Number.POSITIVE_INFINITY): Promise<Proposal> {
    const end = readClock() + seconds;
    const first = await this.#lookUp(id, 0);
    let now = first;
    while (!isNews(now, first)) {
      const left = end - readClock();
      if (left <= 0) break;
      const asked = readClock();
      const longest = now.status === "executing" ? LEASE_HOLD : LONGEST_HOLD;
      now = await this.#lookUp(id, Math.min(left, longest));
      if (readClock() - asked < QUICK && !isNews(now, first)) {
        await this.connection.pause(Math.min(left, QUICK));
      }
    }
    return now;
  }

  /** One page of this agent's proposals, newest first. */
  async listPage(
    query: { readonly status?: string; readonly thread?: string; readonly cursor?: string } = {},
  ): Promise<ProposalPage> {
    return this.connection.call("agents_api_list_proposals", { query });
  }

  /** This agent's proposals, newest first, page by page. */
  async *list(
    query: { readonly status?: string; readonly thread?: string } = {},
  ): AsyncGenerator<Proposal, void, undefined> {
    let cursor = "";
    do {
      const page = await this.listPage({ ...query, cursor });
      yield* page.items;
      cursor = page.next_cursor ?? "";
    } while (cursor);
  }

  /** Withdraw the proposal. Its open request is closed, an unused grant is revoked. */
  async withdraw(id: string): Promise<Proposal> {
    return checkProposal(
      await this.connection.call("agents_api_withdraw", {
        path: { proposal_id: id },
        idempotencyKey: chooseKey(),
      }),
    );
  }

  /**
   * Answer a question of a reviewer. `round` is that of the question; it may be left out
   * when only one is unanswered. ApiError `no_question`: nobody waits for an answer.
   */
  async answer(
    id: string,
    text: string,
    options: KeyOption & { readonly round?: number } = {},
  ): Promise<Proposal> {
    return checkProposal(
      await this.connection.call("agents_api_send_message", {
        path: { proposal_id: id },
        body: { kind: "answer", text, round: options.round ?? null },
        idempotencyKey: chooseKey(options.idempotencyKey),
      }),
    );
  }

  /**
   * Ask the reviewers of a proposal a question about it. ApiError `rounds`: the agent may
   * ask no further one.
   */
  async askReviewers(id: string, text: string, options: KeyOption = {}): Promise<Proposal> {
    return checkProposal(
      await this.connection.call("agents_api_send_message", {
        path: { proposal_id: id },
        body: { kind: "question", text },
        idempotencyKey: chooseKey(options.idempotencyKey),
      }),
    );
  }

  /**
   * Put a question to the people of a queue, or to one person as `@login`, and wait for
   * the answer: data in the form of `schema`, which authorizes nothing. Throws
   * QuestionEnded when it was declined, expired or withdrawn, or still waits after
   * `seconds`; without `seconds` it waits until the question ends. The same key finds the
   * same question again.
   */
  async ask(
    to: string,
    schema: JsonObject,
    text: string,
    options: KeyOption & {
      readonly thread: string;
      readonly expiresIn?: number;
      readonly seconds?: number;
    },
  ): Promise<JsonObject> {
    let question = await this.connection.call("agents_api_ask_question", {
      body: { thread: options.thread, to, schema, text, expires_in: options.expiresIn ?? DAY },
      idempotencyKey: chooseKey(options.idempotencyKey),
    });
    const end = readClock() + (options.seconds ?? Number.POSITIVE_INFINITY);
    while (question.status === "open" && readClock() < end) {
      const asked = readClock();
      question = await this.connection.call("agents_api_get_question", {
        path: { question_id: question.id },
        hold: Math.min(end - asked, LONGEST_HOLD),
      });
      if (question.status === "open" && readClock() - asked < QUICK) {
        await this.connection.pause(QUICK);
      }
    }
    if (question.answer === null) throw new QuestionEnded(question);
    return question.answer;
  }

  /** Withdraw an open question. */
  async withdrawQuestion(id: string): Promise<QuestionOut> {
    return this.connection.call("agents_api_withdraw_question", {
      path: { question_id: id },
      idempotencyKey: chooseKey(),
    });
  }

  /**
   * Redeem the one-use grant before you perform the effect yourself. Until the lease
   * ends, the same key returns the same claim; any other call fails with `grant_spent`.
   * Pass a key of your own only if you store that you begin before you begin: after a
   * crash, the same key cannot tell whether you had begun.
   */
  async redeem(token: string, options: KeyOption = {}): Promise<Claim> {
    const claim = await this.connection.call("agents_api_redeem", {
      body: { token },
      idempotencyKey: chooseKey(options.idempotencyKey),
    });
    checkAnswer(claim, "claim", ["execution", "tool", "idempotency_key"]);
    return claim;
  }

  /**
   * Report the outcome of a redeemed effect: `succeeded` with its result, `failed`
   * (nothing happened, for certain) or `unknown` with a code and a detail.
   */
  async report(claim: Claim, outcome: Outcome): Promise<Proposal> {
    const { status, result = null, code = "", detail = "" } = outcome;
    return checkProposal(
      await this.connection.call("agents_api_report_outcome", {
        path: { execution_id: claim.execution },
        body: {
          fence: claim.fence,
          action_hash: claim.action_hash,
          status,
          result,
          code: code.slice(0, 64),
          detail: detail.slice(0, 2000).toWellFormed(),
        },
      }),
    );
  }

  /** Return the thread's latest checkpoint and the outcome to resume with. */
  async checkpoint(thread: string): Promise<ThreadState> {
    const found = await this.connection.call("agents_api_resume", { path: { thread } });
    checkAnswer(found, "thread", ["thread", "status"]);
    return addDue(found);
  }

  /**
   * Return the same, and wait for the outcome if there is none yet. Call it each time
   * the agent starts again. Check `due`: after `seconds`, or when a person returned the
   * proposal, there may still be none.
   */
  async resume(thread: string, seconds?: number): Promise<ThreadState> {
    const state = await this.checkpoint(thread);
    if (state.outcome === null || state.outcome.outcome) return state;
    const now = await this.wait(state.outcome.id, seconds);
    return addDue({ ...state, outcome: now, acknowledged: Boolean(now.acknowledged_at) });
  }

  /**
   * Acknowledge this outcome, so that it is not offered again. Acknowledge after you have
   * stored your work together with `proposal.outcome`: after a crash in between, the
   * outcome is offered again, and you find it stored. Throws TypeError for a proposal
   * that has no outcome yet.
   */
  async acknowledge(proposal: Proposal): Promise<Proposal> {
    if (!proposal.outcome) {
      throw new TypeError(`${proposal.id} has no outcome to acknowledge yet`);
    }
    return checkProposal(
      await this.connection.call("agents_api_acknowledge", {
        path: { proposal_id: proposal.id },
        body: { outcome: proposal.outcome },
        idempotencyKey: chooseKey(),
      }),
    );
  }

  /** End the run. What is still open is withdrawn. */
  async finish(thread: string, result: ThreadResult): Promise<ThreadOut> {
    return this.connection.call("agents_api_finish", { path: { thread }, body: { result } });
  }

  /** Return the tools that this agent may propose, as the policy declares them. */
  async tools(): Promise<readonly ToolOut[]> {
    return this.connection.call("agents_api_list_tools", {});
  }

  /** Return the agent that the key belongs to. */
  async whoami(): Promise<WhoamiOut> {
    const found = await this.connection.call("agents_api_whoami", {});
    checkAnswer(found, "description of an agent", ["agent"]);
    return found;
  }

  /**
   * Verify that the claim's grant has Counterseal's signature and permits exactly these
   * arguments. `audience` is the tool's in the policy, `tool:` and its name if the policy
   * gives none. Fetches Counterseal's public keys once, and again for a key that it does
   * not know. Throws InvalidGrant.
   */
  async verifyGrant(claim: Claim, audience: string): Promise<VerifiedGrant> {
    const { grant, tool, args, preconditions } = claim;
    const expected = { audience, tool, args, preconditions };
    if (this.#keys !== null) {
      try {
        return await verifyGrant(grant, this.#keys, expected);
      } catch (error) {
        if (!(error instanceof InvalidGrant) || error.code !== "unknown_key") throw error;
      }
    }
    const keys = await this.connection.readPublic("/.well-known/jwks.json");
    this.#keys = isObject(keys) ? keys : {};
    return verifyGrant(grant, this.#keys, expected);
  }

  async #lookUp(id: string, hold: number): Promise<Proposal> {
    const path = { proposal_id: id };
    return checkProposal(await this.connection.call("agents_api_get_proposal", { path, hold }));
  }
}

/** The idempotency key of one call, the same however often the call is sent. */
function chooseKey(given?: string): string {
  return given || crypto.randomUUID();
}

function checkProposal(answer: Proposal): Proposal {
  checkAnswer(answer, "proposal", ["id", "thread", "tool", "status"]);
  return answer;
}

function addDue(state: ResumeOut): ThreadState {
  const { outcome, acknowledged } = state;
  return { ...state, due: !acknowledged && outcome?.outcome ? outcome : null };
}

/** Seconds on a clock that nobody sets. */
export function readClock(): number {
  return performance.now() / 1000;
}
