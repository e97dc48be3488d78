import { Result, Schema } from "effect"
import { bodyItemsMax } from "../../domain/limits/Limits.ts"
import {
  evaluate,
  expressionFault,
  extentOf,
  Medium,
  stepsMax,
  stepsOf,
  tooManySteps
} from "./Expression.ts"
import { JsonPath, select } from "./JsonPath.ts"

/**
 * A JSON template. `{"$": path}` is the value at a path, `{"$cel": expression}` a computed value, `{"$if": expression,
 * "$then": …, "$else": …}` one of two values, and `{"$each": path, "$as": …}` a list. Members and items without a value
 * are left out. docs/vendors-as-files.md#templates
 */
export type Template = Schema.Json

/** The values that a template's paths and expressions can read. */
export interface TemplateScope {
  /** The decoded body, with media in the form in which they are sent. */
  readonly body: unknown
  /** The pixels of the pictures that a form sends as files, by field. */
  readonly pictures?: Readonly<Record<string, { readonly width: number; readonly height: number }>>
  /** The upstream model id. */
  readonly model: string
  /** The parts of the model's id that its form names. */
  readonly named?: Readonly<Record<string, string>> | undefined
  /** The id of the task. */
  readonly task: string
  /** The URL for the vendor's callback. Absent without `PUBLIC_URL`. */
  readonly callback?: string | undefined
  readonly item?: unknown
}

const charactersMax = 20_000
const depthMax = 16

const isObject = (value: unknown): value is Readonly<Record<string, Schema.Json>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

interface Issue {
  readonly path: ReadonlyArray<PropertyKey>
  readonly issue: string
}

const isPath = Schema.is(JsonPath)

const pathIssues = (value: unknown, path: ReadonlyArray<PropertyKey>): ReadonlyArray<Issue> =>
  isPath(value) ? [] : [{ path, issue: "Expected a JSONPath such as $.body.prompt" }]

const expressionIssues = (
  value: unknown,
  path: ReadonlyArray<PropertyKey>
): ReadonlyArray<Issue> => {
  const issue =
    typeof value === "string" ? expressionFault(value, "value") : "Expected an expression"
  return issue === undefined ? [] : [{ path, issue }]
}

/** The combinations of members that make an object a directive. */
const directives: ReadonlyArray<ReadonlyArray<string>> = [
  ["$"],
  ["$cel"],
  ["$if", "$then"],
  ["$if", "$then", "$else"],
  ["$each", "$as"],
  ["$file"]
]

const isDirective = (names: ReadonlyArray<string>): boolean =>
  directives.some((of) => of.length === names.length && of.every((name) => names.includes(name)))

const issuesIn = (value: Schema.Json, path: ReadonlyArray<PropertyKey>): ReadonlyArray<Issue> => {
  if (path.length > depthMax) return [{ path, issue: `Expected at most ${depthMax} levels` }]
  if (Array.isArray(value)) return value.flatMap((item, index) => issuesIn(item, [...path, index]))
  if (!isObject(value)) return []
  const names = Object.keys(value)
  if (!names.some((name) => name.startsWith("$"))) {
    return names.flatMap((name) => issuesIn(value[name] ?? null, [...path, name]))
  }
  if (!isDirective(names)) {
    return [{ path, issue: "Expected $, or $cel, or $if with $then and $else, or $each with $as" }]
  }
  return names.flatMap((name) => {
    const at = [...path, name]
    if (name === "$" || name === "$each") return pathIssues(value[name], at)
    if (name === "$cel" || name === "$if") return expressionIssues(value[name], at)
    return issuesIn(value[name] ?? null, at)
  })
}

export const Template = Schema.Json.check(
  Schema.makeFilter<Schema.Json>((template) => {
    if (JSON.stringify(template).length > charactersMax) {
      return `Expected at most ${charactersMax} characters`
    }
    return issuesIn(template, []).map(({ issue, path }) => ({ path: [...path], issue }))
  })
)

/** Stands for a missing value. */
const nothing = Symbol("nothing")

/** Converts a CEL number to a JSON number. */
const jsonOf = (value: unknown): unknown => {
  if (typeof value === "bigint") {
    const number = Number(value)
    if (!Number.isSafeInteger(number)) throw new TemplateFault(`${value} is too large a number`)
    return number
  }
  if (Array.isArray(value)) return value.map(jsonOf)
  const isPlain = value === null || ["string", "number", "boolean"].includes(typeof value)
  return isPlain || value instanceof Medium ? value : nothing
}

class TemplateFault extends Error {}

/** What is left of the work and the size of one request. */
interface Budget {
  steps: number
  characters: number
}

/** A request may repeat what is in its body so many times, and have so many characters beside it. */
const copiesMax = 4
const ownCharactersMax = 1_000_000

const budgetFor = (scope: TemplateScope): Budget => {
  const { characters, mediaCharacters } = extentOf(scope)
  return {
    steps: stepsMax,
    characters: copiesMax * (characters + mediaCharacters) + ownCharactersMax
  }
}

const spend = (budget: Budget, steps: number, characters: number): void => {
  budget.steps -= steps
  budget.characters -= characters
  if (budget.steps < 0) throw new TemplateFault(tooManySteps)
  if (budget.characters < 0) throw new TemplateFault("It repeats too much of the body")
}

/** A value that is written as it is. */
const copied = (value: unknown, budget: Budget): unknown => {
  const { characters, mediaCharacters, values } = extentOf(value)
  spend(budget, values, characters + mediaCharacters)
  return value
}

const computed = (text: unknown, scope: TemplateScope, budget: Budget): unknown => {
  const expression = String(text)
  spend(budget, stepsOf(expression, "value", { ...scope }), 0)
  const found = evaluate(expression, "value", { callback: null, pictures: {}, ...scope })
  if (Result.isFailure(found)) throw new TemplateFault(found.failure)
  return found.success
}

const renderObject = (
  value: Readonly<Record<string, Schema.Json>>,
  scope: TemplateScope,
  budget: Budget
): unknown => {
  if ("$" in value) {
    const found = select(String(value["$"]), scope)
    return found[0] === undefined ? nothing : copied(found[0], budget)
  }
  if ("$cel" in value) return copied(jsonOf(computed(value["$cel"], scope, budget)), budget)
  if ("$if" in value) {
    const isThen = computed(value["$if"], scope, budget) === true
    const branch = isThen ? value["$then"] : value["$else"]
    return branch === undefined ? nothing : renderAny(branch, scope, budget)
  }
  if ("$each" in value) {
    const found = select(String(value["$each"]), scope)
    return found
      .slice(0, bodyItemsMax)
      .map((item) => renderAny(value["$as"] ?? null, { ...scope, item }, budget))
      .filter((item) => item !== nothing)
  }
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, member]) => {
      const rendered = renderAny(member, scope, budget)
      return rendered === nothing ? [] : [[name, rendered]]
    })
  )
}

const renderAny = (template: Schema.Json, scope: TemplateScope, budget: Budget): unknown => {
  if (Array.isArray(template)) {
    spend(budget, 1, 0)
    return template.map((item) => renderAny(item, scope, budget)).filter((item) => item !== nothing)
  }
  if (!isObject(template)) return copied(template, budget)
  spend(budget, 1, 0)
  return renderObject(template, scope, budget)
}

/** The value of a template; `undefined` if it has none. Fails if an expression fails, or if it is too much work. */
export const render = (
  template: Template,
  scope: TemplateScope
): Result.Result<unknown, string> => {
  try {
    const value = renderAny(template, scope, budgetFor(scope))
    return Result.succeed(value === nothing ? undefined : value)
  } catch (error) {
    if (error instanceof TemplateFault) return Result.fail(error.message)
    throw error
  }
}
