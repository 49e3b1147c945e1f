// The arguments of a tool: what its schema takes, what people approve, what its function
// gets. A schema is any that follows Standard Schema, such as those of Zod, Valibot and
// ArkType; this file repeats the part of that specification that the client uses
// (standardschema.dev).

import type { JsonObject, JsonValue } from "./api.ts";
import { InvalidArguments, isObject } from "./errors.ts";
import type { FieldError } from "./errors.ts";
import { encodeJson } from "./json.ts";

/** One fault that a schema found. */
export interface SchemaIssue {
  readonly message: string;
  readonly path?: ReadonlyArray<PropertyKey | { readonly key: PropertyKey }> | undefined;
}

/** What validating a value gives: the value for the function, or the faults. */
export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

/** A schema that follows Standard Schema. */
export interface Schema<Output> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (
      value: unknown,
    ) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined;
  };
}

/** The arguments of the function, from approved JSON. Throws InvalidArguments. */
export async function loadArguments<Args>(
  tool: string,
  schema: Schema<Args>,
  args: unknown,
): Promise<Args> {
  const result = await schema["~standard"].validate(args);
  if (result.issues) throw new InvalidArguments(tool, result.issues.map(readIssue));
  if (isObject(args) && typeof result.value === "object" && result.value !== null) {
    // Many schemas drop what they do not know: people would approve what is not used.
    const known = new Set(Object.keys(result.value));
    const unknown = Object.keys(args).filter((name) => !known.has(name));
    if (unknown.length) {
      const faults = unknown.map((path) => ({ path, message: "the tool has no such argument" }));
      throw new InvalidArguments(tool, faults);
    }
  }
  return result.value;
}

/**
 * Check arguments from a model, and return them as the JSON that people approve. A
 * default of the schema is added, so that they approve every value that is used; other
 * conversions happen after the approval. Throws InvalidArguments.
 */
export async function dumpArguments<Args>(
  tool: string,
  schema: Schema<Args>,
  args: unknown,
): Promise<JsonObject> {
  if (!isObject(args)) {
    throw new InvalidArguments(tool, [{ path: "", message: "they must be an object" }]);
  }
  const loaded = await loadArguments(tool, schema, args);
  const defaults = Object.entries(loaded as object).filter(([name]) => !(name in args));
  const all: JsonObject = { ...Object.fromEntries(defaults), ...args };
  try {
    encodeJson(all);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new InvalidArguments(tool, [{ path: "", message: error.message }]);
  }
  return all;
}

function readIssue(issue: SchemaIssue): FieldError {
  const parts = issue.path ?? [];
  const names = parts.map((part) => String(typeof part === "object" ? part.key : part));
  return { path: names.join("."), message: issue.message };
}

/**
 * The JSON object that is reported as the result. What is no object, or could be taken
 * for a wrapped one, is wrapped as `{"value": ...}`. The effect has happened: a result
 * that is not JSON must not hide that, so it becomes a text.
 */
export function dumpResult(result: unknown): JsonObject {
  let dumped: JsonValue;
  try {
    dumped = JSON.parse(JSON.stringify(result) ?? "null") as JsonValue;
    encodeJson(dumped);
  } catch {
    dumped = String(result).toWellFormed();
  }
  return isObject(dumped) && Object.keys(dumped).join() !== "value" ? dumped : { value: dumped };
}

/** The function's result, as JSON, from a reported one. */
export function loadResult(result: JsonObject | null): JsonValue {
  if (result !== null && Object.keys(result).join() === "value") return result["value"] ?? null;
  return result;
}

/** Whether two values are the same JSON. */
export function isSameJson(first: JsonValue, second: JsonValue): boolean {
  if (Array.isArray(first) && Array.isArray(second)) {
    return (
      first.length === second.length &&
      first.every((one, index) => isSameJson(one, second[index] as JsonValue))
    );
  }
  if (isObject(first) && isObject(second)) {
    const names = Object.keys(first);
    return (
      names.length === Object.keys(second).length &&
      names.every((name) => name in second && isSameJson(first[name]!, second[name]!))
    );
  }
  return first === second;
}
