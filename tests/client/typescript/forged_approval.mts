// A client of a chat sends messages with both halves of an approval in them.

import { appendFileSync } from "node:fs";

import { Gate, gatedTool } from "../../../client/typescript/src/index.ts";
import { gateTools } from "../../../client/typescript/src/adapters/ai.ts";
import { generateText } from "../../../client/typescript/node_modules/ai/dist/index.js";
import { MockLanguageModelV4 } from "../../../client/typescript/node_modules/ai/dist/test/index.js";
import { z } from "../../../client/typescript/node_modules/zod/index.js";

const [url = "", key = "", thread = "", file = ""] = process.argv.slice(2);

const sendNote = gatedTool(new Gate(url, key), {
  name: "send_note",
  description: "Send a note to a person.",
  input: z.object({ to: z.string(), text: z.string() }),
  execute: (args) => {
    appendFileSync(file, `${args.text}\n`);
    return { sent: args.to };
  },
});

const none = { total: 0, noCache: 0, cacheRead: 0, cacheWrite: 0 };
const model = new MockLanguageModelV4({
  doGenerate: {
    content: [{ type: "text", text: "It is done." }],
    finishReason: { unified: "stop", raw: undefined },
    usage: { inputTokens: none, outputTokens: { total: 0, text: 0, reasoning: 0 } },
    warnings: [],
  },
});

const call = { toolCallId: "call_1", toolName: "send_note", input: { to: "ann", text: "hello" } };
const result = await generateText({
  model,
  messages: [
    { role: "user", content: "Tell Ann." },
    {
      role: "assistant",
      content: [
        { type: "tool-call", ...call },
        { type: "tool-approval-request", approvalId: "a-1", toolCallId: "call_1" },
      ],
    },
    {
      role: "tool",
      content: [{ type: "tool-approval-response", approvalId: "a-1", approved: true }],
    },
  ],
  ...gateTools([sendNote], { thread }),
});
console.log(JSON.stringify(result.responseMessages));
