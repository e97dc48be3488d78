import { Environment, EvaluationError } from "@marcbachmann/cel-js"
import { Result, Schema } from "effect"

/**
 * What an expression is used for: a condition, a value of a request, or a price. Each has its own variables. A price
 * uses only integers and rounds explicitly. docs/vendors-as-files.md#expressions, ADR 0298
 */
export type Purpose = "condition" | "value" | "price"

const variables: Readonly<Record<Purpose, ReadonlyArray<string>>> = {
  /** Parts of a vendor's response. */
  condition: ["status", "code", "message", "response"],
  /** `item` is an element of the list that a template repeats. */
  value: ["body", "model", "task", "callback", "item"],
  /** `usage` and `results` exist once a task has ended. */
  price: ["body", "usage", "results"]
}

export const expressionCharactersMax = 2000

const limits = {
  maxAstNodes: 200,
  maxDepth: 24,
  maxListElements: 64,
  maxMapEntries: 64,
  maxCallArguments: 4
}

/** The allowed functions. None of them loops over its input or takes a pattern. */
const calls: ReadonlySet<string> = new Set([
  "has",
  "size",
  "int",
  "string",
  "startsWith",
  "endsWith",
  "contains",
  "min",
  "max",
  "divideUp",
  "divideDown",
  "timesUp",
  "timesDown"
])

const divide = (a: bigint, b: bigint, isUp: boolean): bigint => {
  const quotient = a / b
  const isExact = quotient * b === a
  const isNegative = a < 0n !== b < 0n
  return isExact || isNegative === isUp ? quotient : quotient + (isUp ? 1n : -1n)
}

/** A JSON decimal number of at most 18 integer digits. A vendor's `double` may have up to 17 digits and an exponent. */
export const decimal = /^(-?)(\d{1,18})(?:\.(\d{1,30}))?(?:[eE]-(\d{1,3}))?$/u

/** Multiplies a decimal number by an integer exactly, and rounds once. */
const times = (value: unknown, by: bigint, isUp: boolean): bigint => {
  const match = decimal.exec(String(value))
  if (match === null)
    throw new EvaluationError(`Not a decimal number: ${String(value).slice(0, 40)}`)
  const [, sign, whole = "0", fraction = "", exponent = "0"] = match
  const scaled = BigInt(`${sign}${whole}${fraction}`)
  return divide(scaled * by, 10n ** BigInt(fraction.length + Number(exponent)), isUp)
}

const environmentOf = (purpose: Purpose): Environment => {
  const environment = new Environment({ limits, homogeneousAggregateLiterals: false })
    .registerFunction("min(int, int): int", (a: bigint, b: bigint) => (a < b ? a : b))
    .registerFunction("max(int, int): int", (a: bigint, b: bigint) => (a > b ? a : b))
    .registerFunction("divideUp(int, int): int", (a: bigint, b: bigint) => divide(a, b, true))
    .registerFunction("divideDown(int, int): int", (a: bigint, b: bigint) => divide(a, b, false))
    .registerFunction("timesUp(dyn, int): int", (a: unknown, b: bigint) => times(a, b, true))
    .registerFunction("timesDown(dyn, int): int", (a: unknown, b: bigint) => times(a, b, false))
  for (const name of variables[purpose]) environment.registerVariable(name, "dyn")
  return environment
}

const environments: Readonly<Record<Purpose, Environment>> = {
  condition: environmentOf("condition"),
  value: environmentOf("value"),
  price: environmentOf("price")
}

const results: Readonly<Record<Purpose, ReadonlySet<string | undefined>>> = {
  condition: new Set(["bool", "dyn"]),
  value: new Set(["bool", "dyn", "int", "string", "double", "null"]),
  price: new Set(["int", "dyn"])
}

type Compiled = (scope: Readonly<Record<string, unknown>>) => unknown

const isNode = (value: unknown): value is { readonly op: string; readonly args: unknown } =>
  typeof value === "object" && value !== null && "op" in value && "args" in value

/** Why an expression contains something that is not allowed. */
const faultIn = (value: unknown, purpose: Purpose): string | undefined => {
  if (Array.isArray(value)) {
    for (const item of value) {
      const fault = faultIn(item, purpose)
      if (fault !== undefined) return fault
    }
    return undefined
  }
  if (!isNode(value)) return undefined
  const { args, op } = value
  if ((op === "call" || op === "rcall") && Array.isArray(args) && !calls.has(String(args[0]))) {
    return `Expected one of the functions ${[...calls].join(", ")}, got ${String(args[0])}`
  }
  if (purpose === "price" && op === "/") {
    return "Expected divideUp or divideDown: a division of a price says how it rounds"
  }
  if (purpose === "price" && op === "value" && typeof args === "number") {
    return "Expected integers: a price has no floating point. Use timesUp or timesDown for decimals"
  }
  return op === "value" ? undefined : faultIn(args, purpose)
}

/** Only the first line of the message, because the others quote the text. */
const messageOf = (error: unknown): string =>
  error instanceof Error ? (error.message.split("\n")[0] ?? "") : "It is no expression of CEL"

const compile = (text: string, purpose: Purpose): Result.Result<Compiled, string> => {
  if (text.length > expressionCharactersMax) {
    return Result.fail(`Expected at most ${expressionCharactersMax} characters`)
  }
  try {
    const parsed = environments[purpose].parse(text)
    const fault = faultIn(parsed.ast, purpose)
    if (fault !== undefined) return Result.fail(fault)
    const { error, type, valid } = parsed.check()
    if (!valid) return Result.fail(messageOf(error))
    return results[purpose].has(type)
      ? Result.succeed((scope) => parsed(scope))
      : Result.fail(`Expected an expression of ${[...results[purpose]].join(" or ")}, got ${type}`)
  } catch (error) {
    return Result.fail(messageOf(error))
  }
}

const known = new Map<string, Result.Result<Compiled, string>>()
const knownMax = 2000

/** Cached without a limit: expressions come from catalogs, which have few. */
const compiled = (text: string, purpose: Purpose): Result.Result<Compiled, string> => {
  const key = `${purpose} ${text}`
  const found = known.get(key)
  if (found !== undefined) return found
  if (known.size >= knownMax) known.clear()
  const made = compile(text, purpose)
  known.set(key, made)
  return made
}

/** Why a text is not a valid expression for this purpose; `undefined` if it is valid. */
export const expressionFault = (text: string, purpose: Purpose): string | undefined => {
  const made = compiled(text, purpose)
  return Result.isSuccess(made) ? undefined : made.failure
}

/** A CEL expression in the catalog. */
export const Expression = (purpose: Purpose) =>
  Schema.NonEmptyString.check(Schema.makeFilter<string>((text) => expressionFault(text, purpose)))

/**
 * Converts a JSON value for CEL. Whole numbers become integers. In a price, any other number becomes its decimal text,
 * which only `times…` reads.
 */
const valueOf = (value: unknown, purpose: Purpose): unknown => {
  if (typeof value === "number") {
    if (Number.isSafeInteger(value)) return BigInt(value)
    return purpose === "price" ? String(value) : value
  }
  if (Array.isArray(value)) return value.map((item: unknown) => valueOf(item, purpose))
  return typeof value === "object" && value !== null
    ? Object.fromEntries(
        Object.entries(value).map(([name, member]) => [name, valueOf(member, purpose)])
      )
    : value
}

/** Evaluates an expression over JSON. Variables that are left out are null. */
export const evaluate = (
  text: string,
  purpose: Purpose,
  scope: Readonly<Record<string, unknown>>
): Result.Result<unknown, string> =>
  Result.flatMap(compiled(text, purpose), (run) => {
    const given = Object.fromEntries(
      variables[purpose].map((name) => [name, valueOf(scope[name] ?? null, purpose)])
    )
    try {
      return Result.succeed(run(given))
    } catch (error) {
      return Result.fail(messageOf(error))
    }
  })

/** Whether a condition holds. A condition that cannot be evaluated does not hold. */
export const holds = (text: string, scope: Readonly<Record<string, unknown>>): boolean => {
  const found = evaluate(text, "condition", scope)
  return Result.isSuccess(found) && found.success === true
}
