import { Environment, EvaluationError } from "@marcbachmann/cel-js"
import { Result, Schema } from "effect"
import { textCodePointsMax } from "../../domain/limits/Limits.ts"

/**
 * What an expression is used for: a condition, a value of a request, or a price. Each has its own variables. A price
 * uses only integers and rounds explicitly. docs/vendors-as-files.md#expressions, ADR 0298
 */
export type Purpose = "condition" | "value" | "price"

const variables: Readonly<Record<Purpose, ReadonlyArray<string>>> = {
  /** Parts of a vendor's response, and the request: `submit`, `results` or `query`. */
  condition: ["request", "status", "code", "message", "response"],
  /** `item` is an element of the list that a template repeats, `pictures` the pixels of the files of a form. */
  value: ["body", "pictures", "model", "named", "task", "callback", "item"],
  /** `usage` and `results` exist once a task has ended. */
  price: ["body", "usage", "results"]
}

export const expressionCharactersMax = 2000

/**
 * The most steps of one evaluation, and of all evaluations for one request. An evaluation takes at most as many steps as
 * the expression has nodes, times the lists or texts that its `+` may join, times the values that it can read. ADR 0298
 */
export const stepsMax = 2_000_000

/** As many characters take one step. */
const charactersPerStep = 1000

/** A longer text is a medium, because the texts of fields are shorter. */
const textUnitsMax = 2 * textCodePointsMax

/** `contains` searches for a text in quotes, because a search for a long one may take quadratic time. */
const soughtCharactersMax = 200

const limits = {
  maxAstNodes: 200,
  maxDepth: 24,
  maxListElements: 64,
  maxMapEntries: 64,
  maxCallArguments: 4
}

/**
 * A medium as it is sent, which may have millions of characters. Expressions can see how it starts and ends, and write
 * text in front of it.
 */
export class Medium {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
  toJSON(): string {
    return this.text
  }
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
  "lowerAscii",
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
  return within64Bits(isExact || isNegative === isUp ? quotient : quotient + (isUp ? 1n : -1n))
}

const within64Bits = (value: bigint): bigint => {
  if (BigInt.asIntN(64, value) === value) return value
  throw new EvaluationError("The number has more than 64 bits")
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
    .registerType("Medium", Medium)
    .registerFunction("Medium.startsWith(string): bool", ({ text }: Medium, start: string) =>
      text.startsWith(start)
    )
    .registerFunction("Medium.endsWith(string): bool", ({ text }: Medium, end: string) =>
      text.endsWith(end)
    )
    .registerOperator(
      "string + Medium",
      (before: string, { text }: Medium) => new Medium(before + text)
    )
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

interface Compiled {
  readonly run: (scope: Readonly<Record<string, unknown>>) => unknown
  /** The steps of an evaluation for each value that it can read. */
  readonly stepsPerValue: number
}

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
  if (op === "rcall" && Array.isArray(args) && isLongSearch(args)) {
    return `Expected contains with a text in quotes, of at most ${soughtCharactersMax} characters`
  }
  if (purpose === "price" && op === "/") {
    return "Expected divideUp or divideDown: a division of a price says how it rounds"
  }
  if (purpose === "price" && op === "value" && typeof args === "number") {
    return "Expected integers: a price has no floating point. Use timesUp or timesDown for decimals"
  }
  return op === "value" ? undefined : faultIn(args, purpose)
}

/** Whether a call searches for something other than a short text in quotes. */
const isLongSearch = (args: ReadonlyArray<unknown>): boolean => {
  const [name, , given] = args
  const [sought]: ReadonlyArray<unknown> = Array.isArray(given) ? given : []
  const text = isNode(sought) && sought.op === "value" ? sought.args : undefined
  return name === "contains" && (typeof text !== "string" || text.length > soughtCharactersMax)
}

const stepsPerValue = (ast: unknown): number => {
  let nodes = 0
  let joins = 0
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) return value.forEach(visit)
    if (!isNode(value)) return
    nodes += 1
    if (value.op === "+") joins += 1
    visit(value.args)
  }
  visit(ast)
  return nodes * (joins + 1)
}

/** Only the first line of the message, because the others quote the text. */
const messageOf = (error: unknown): string =>
  error instanceof Error ? (error.message.split("\n")[0] ?? "") : "It is not a CEL expression"

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
      ? Result.succeed({
          run: (scope) => parsed(scope),
          stepsPerValue: stepsPerValue(parsed.ast)
        })
      : Result.fail(`Expected an expression of ${[...results[purpose]].join(" or ")}, got ${type}`)
  } catch (error) {
    return Result.fail(messageOf(error))
  }
}

const known = new Map<string, Result.Result<Compiled, string>>()
const knownMax = 2000

/** Cached, because expressions come from catalogs, which have few. */
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
  if (typeof value === "string") return value.length > textUnitsMax ? new Medium(value) : value
  if (Array.isArray(value)) return value.map((item: unknown) => valueOf(item, purpose))
  return typeof value === "object" && value !== null && !(value instanceof Medium)
    ? Object.fromEntries(
        Object.entries(value).map(([name, member]) => [name, valueOf(member, purpose)])
      )
    : value
}

/** The amount of JSON. It is not counted further once it has too many values for any expression. */
export interface Extent {
  readonly values: number
  readonly characters: number
  readonly mediaCharacters: number
}

export const extentOf = (root: unknown): Extent => {
  const left = [root]
  let values = 0
  let characters = 0
  let mediaCharacters = 0
  while (left.length > 0 && values <= stepsMax) {
    const value = left.pop()
    values += 1
    if (value instanceof Medium) mediaCharacters += value.text.length
    else if (typeof value === "string" && value.length > textUnitsMax) {
      mediaCharacters += value.length
    } else if (typeof value === "string") characters += value.length
    else if (typeof value === "object" && value !== null && !ArrayBuffer.isView(value)) {
      for (const member of Object.values(value)) left.push(member)
    }
  }
  return { values, characters, mediaCharacters }
}

/** The most steps that an evaluation over this scope takes. */
export const stepsOf = (
  text: string,
  purpose: Purpose,
  scope: Readonly<Record<string, unknown>>
): number => {
  const made = compiled(text, purpose)
  const { characters, values } = extentOf(scope)
  return Result.isSuccess(made)
    ? Math.ceil(made.success.stepsPerValue * (values + characters / charactersPerStep))
    : 0
}

export const tooManySteps = "The expressions have too many values to read"

/** Evaluates an expression over JSON. Variables that are left out are null. */
export const evaluate = (
  text: string,
  purpose: Purpose,
  scope: Readonly<Record<string, unknown>>
): Result.Result<unknown, string> =>
  Result.flatMap(compiled(text, purpose), ({ run }) => {
    if (stepsOf(text, purpose, scope) > stepsMax) return Result.fail(tooManySteps)
    try {
      return Result.succeed(
        run(
          Object.fromEntries(
            variables[purpose].map((name) => [name, valueOf(scope[name] ?? null, purpose)])
          )
        )
      )
    } catch (error) {
      return Result.fail(messageOf(error))
    }
  })

/** Whether a condition holds. A condition that cannot be evaluated does not hold. */
export const holds = (text: string, scope: Readonly<Record<string, unknown>>): boolean => {
  const found = evaluate(text, "condition", scope)
  return Result.isSuccess(found) && found.success === true
}
