import type { Duration } from "effect"
import type { ResultItem } from "../VendorClient.ts"
import type { VendorError } from "../VendorError.ts"

/** The outcome of one submit. `after` counts from the submit, by the fiber's clock. */
export type MockStep =
  | {
      readonly _tag: "Result"
      readonly after: Duration.Input
      readonly items: ReadonlyArray<ResultItem>
    }
  | { readonly _tag: "JobFails"; readonly after: Duration.Input; readonly error: VendorError }
  | MockRefusal

/** A submit that is refused, or whose outcome stays unknown. */
export interface MockRefusal {
  readonly _tag: "Refused"
  readonly after: Duration.Input
  readonly error: VendorError
}

/** One step per submit; the last step repeats. */
export type MockSteps = readonly [MockStep, ...Array<MockStep>]

/** Steps for all models, or by model label. `default` applies to the other labels, and is one image if absent. */
export type MockScript = MockSteps | Readonly<Record<string, MockSteps>>

const isSteps = (script: MockScript): script is MockSteps => Array.isArray(script)

/** The position in a script. Models that share steps share a count. */
export class ScriptRun {
  readonly #byModel: Readonly<Record<string, MockSteps>>
  readonly #taken = new Map<MockSteps, number>()

  constructor(script: MockScript) {
    this.#byModel = isSteps(script) ? { default: script } : script
  }

  /** `undefined` if the script has no steps for this model. */
  stepAt(model: string, index: number): MockStep | undefined {
    return this.#stepsOf(model)?.[index]
  }

  /** The step of the model's next submit. */
  next(model: string): MockStep | undefined {
    return this.stepAt(model, this.#nextOf(model))
  }

  /** Counts a submit. Returns the index of its step. */
  take(model: string): number {
    const steps = this.#stepsOf(model)
    const index = this.#nextOf(model)
    if (steps !== undefined) this.#taken.set(steps, index + 1)
    return index
  }

  /** All steps, of all models. */
  get steps(): ReadonlyArray<MockStep> {
    return Object.values(this.#byModel).flat()
  }

  #nextOf(model: string): number {
    const steps = this.#stepsOf(model)
    return steps === undefined ? 0 : Math.min(this.#taken.get(steps) ?? 0, steps.length - 1)
  }

  #stepsOf(model: string): MockSteps | undefined {
    return this.#byModel[model] ?? this.#byModel["default"]
  }
}
