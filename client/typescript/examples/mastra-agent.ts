// A Mastra agent whose tool waits for people without a process that waits.
//
//     node mastra-agent.ts start   # proposes, and ends
//     node mastra-agent.ts resume  # after people decided
//
// COUNTERSEAL_URL and COUNTERSEAL_KEY name the gate and the agent's key. To stay runnable without a model's key, the model is a script: it asks for one note.

import { Agent } from "@mastra/core/agent";
import { Mastra } from "@mastra/core/mastra";
import { LibSQLStore } from "@mastra/libsql";
import { MockLanguageModelV4 } from "ai/test";
import { z } from "zod";

import { Gate, gatedTool } from "@counterseal/client";
import { buildTool, callIdGuard, listWaiting, resumeRun } from "@counterseal/client/mastra";

const { COUNTERSEAL_URL: url = "", COUNTERSEAL_KEY: key = "" } = process.env;
const [action = "", thread = "order_78291", file = "mastra-agent.db"] = process.argv.slice(2);
const gate = new Gate(url, key);

const sendNote = gatedTool(gate, {
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
  doStream: async ({ prompt }) => {
    const done = prompt.at(-1)?.role === "tool";
    const input = JSON.stringify({ to: "ann", text: "Your parcel is on its way." });
    const none = { total: 0, noCache: 0, cacheRead: 0, cacheWrite: 0 };
    const usage = { inputTokens: none, outputTokens: { total: 0, text: 0, reasoning: 0 } };
    const stream = new ReadableStream({
      start: (controller) => {
        controller.enqueue({ type: "stream-start", warnings: [] });
        if (done) {
          controller.enqueue({ type: "text-start", id: "words" });
          controller.enqueue({ type: "text-delta", id: "words", delta: "I told Ann." });
          controller.enqueue({ type: "text-end", id: "words" });
        } else {
          const toolName = "send_note";
          controller.enqueue({ type: "tool-call", toolCallId: "call_1", toolName, input });
        }
        const finishReason = { unified: done ? "stop" : "tool-calls", raw: undefined };
        controller.enqueue({ type: "finish", finishReason, usage });
        controller.close();
      },
    });
    return { stream };
  },
});

const agent = new Agent({
  id: "post",
  name: "post",
  instructions: "Send notes.",
  model: model as never, // Mastra's own type of a model has streams alone
  tools: { send_note: buildTool(sendNote) },
  outputProcessors: [callIdGuard],
});
const storage = new LibSQLStore({ id: "runs", url: `file:${file}` });
new Mastra({ agents: { agent }, storage, logger: false }); // stores suspended runs

if (action === "start") {
  const output = await agent.stream("Tell Ann.", { memory: { thread, resource: "post" } });
  await output.consumeStream();
} else {
  const { text } = await resumeRun(agent, gate, { thread, waitSeconds: 30 });
  if (text) console.log(text);
}
for (const { waiting } of await listWaiting(agent, thread)) {
  console.log(`Waits for people: ${waiting.url}`);
}
