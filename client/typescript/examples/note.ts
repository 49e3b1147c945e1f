// A run whose one tool waits for people; start it again at any time, also after a kill.
//
//     node examples/note.ts URL KEY THREAD

import { Gate, ToolError, gatedTool } from "@counterseal/client";
import { z } from "zod";

const [url = "", key = "", thread = ""] = process.argv.slice(2);
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

try {
  const note = { to: "ann", text: "Your parcel is on its way." };
  console.log(await sendNote.call(note, { thread, callId: "note" }));
} catch (error) {
  if (!(error instanceof ToolError)) throw error;
  console.log(error.message); // for the model: what happened, and whether to call again
}
