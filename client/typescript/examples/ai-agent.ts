// An agent of the Vercel AI SDK whose tool waits for people without a process that waits.
//
//     node ai-agent.ts start   # proposes, and ends
//     node ai-agent.ts resume  # after people decided
//
// COUNTERSEAL_URL and COUNTERSEAL_KEY name the gate and the agent's key. To stay runnable without a model's key, the model is a script: it asks for one note.

import { readFileSync, writeFileSync } from "node:fs";

import { generateText, isStepCount } from "ai";
import type { ModelMessage } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { z } from "zod";

import { Gate, gatedTool } from "@counterseal/client";
import { answerApprovals, gateTools } from "@counterseal/client/ai";

const { COUNTERSEAL_URL: url = "", COUNTERSEAL_KEY: key = "" } = process.env;
const [action = "", thread = "order_78291", file = "ai-agent.json"] = process.argv.slice(2);

const sendNote = gatedTool(new Gate(url, key), {
  name: "send_note",
  description: "Send a note to a person.",
  input: z.object({ to: z.string(), text: z.string() }),
  execute: ({ to, text }, claim) => {
    // The key is for the service that sends the note: it performs one key once.
    console.log(`Sending to ${to} under ${claim.idempotency_key}: ${text}`);
    return { sent: to };
  },
});

/** Stands for a model: one tool call first, then its last words. */
const model = new MockLanguageModelV4({
  doGenerate: async ({ prompt }) => {
    const done = prompt.at(-1)?.role === "tool";
    const input = JSON.stringify({ to: "ann", text: "Your parcel is on its way." });
    const call = { type: "tool-call", toolCallId: "call_1", toolName: "send_note", input } as const;
    const none = { total: 0, noCache: 0, cacheRead: 0, cacheWrite: 0 };
    return {
      content: [done ? { type: "text", text: "I told Ann." } : call],
      finishReason: { unified: done ? "stop" : "tool-calls", raw: undefined },
      usage: { inputTokens: none, outputTokens: { total: 0, text: 0, reasoning: 0 } },
      warnings: [],
    };
  },
});

const gated = gateTools([sendNote], { thread });
let messages: ModelMessage[] = [{ role: "user", content: "Tell Ann." }];
if (action === "resume") {
  const stored = JSON.parse(readFileSync(file, "utf8")) as ModelMessage[];
  const answered = await answerApprovals(stored, gated, { waitSeconds: 30 });
  if (answered === null) {
    console.log("Nobody has decided yet.");
    process.exit(1);
  }
  messages = answered;
}
const result = await generateText({ model, messages, stopWhen: isStepCount(5), ...gated });
writeFileSync(file, JSON.stringify([...messages, ...result.responseMessages]));
for (const part of result.content) {
  if (part.type === "tool-approval-request") console.log(`Waits: ${part.reason}`);
}
if (result.text) console.log(result.text);
