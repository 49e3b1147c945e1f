// One process of an agent under test, for counterseal_conformance: the job is the
// first line on the standard input, and the answers are lines of JSON. The process ends
// when the kit closes its side.

import { once } from "node:events";
import { createInterface } from "node:readline";

import { meetOthers } from "./scripting.ts";
import type { Job, Report } from "./scripting.ts";

/** The agents, by the variant of the kit. */
const AGENTS = {
  ai: () => import("./ai-agent.ts"),
  mastra: () => import("./mastra-agent.ts"),
};

const lines = createInterface({ input: process.stdin });
const ended = once(lines, "close");
const [first] = (await once(lines, "line")) as [string];
const job = JSON.parse(first) as Job;

function send(message: unknown): void {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}

const { runJob } = await AGENTS[job.variant]();
send("ready");
let report: Report;
try {
  await meetOthers(job.barrier);
  report = await runJob(job);
} catch (error) {
  report = { state: "failed", error: String(error) };
}
send(report);
await ended;
process.exit(0);
