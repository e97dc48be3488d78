import { Option, Schema } from "effect"

/** The behavior that directives in a prompt request. An empty script is an ordinary job. */
export interface Script {
  /** The number of submits that are refused with 429 before one is accepted; below, the same with 503. */
  readonly throttledSubmits?: number
  readonly failedSubmits?: number
  /** Every submit is refused. */
  readonly refusal?: "content" | "media" | "operator"
  readonly isSubmitLost?: boolean
  readonly crash?: CrashPoint
  readonly delayMillis?: number
  readonly itemsMax?: number
  /** How the job ends, if it does not succeed. */
  readonly ending?: Ending
}

type CrashPoint = "before-submit" | "after-submit"

/** How a job ends. With `hang` it never ends. */
export const Ending = Schema.Literals(["done", "fail", "timeout", "lost", "hang"])
export type Ending = typeof Ending.Type

export interface Directive {
  /** An example of its use in a prompt. */
  readonly example: string
  /** Reads the text after `=`, which may be empty. */
  readonly read: (value: string) => Option.Option<Script>
}

const always =
  (script: Script) =>
  (value: string): Option.Option<Script> =>
    value === "" ? Option.some(script) : Option.none()

const countMax = 1000

const count =
  (make: (count: number) => Script) =>
  (value: string): Option.Option<Script> =>
    /^\d{1,4}$/u.test(value) && Number(value) <= countMax
      ? Option.some(make(Number(value)))
      : Option.none()

const unitMillis: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }
const delayMillisMax = 24 * 3_600_000

const delay = (value: string): Option.Option<Script> => {
  const match = /^(\d{1,8})(ms|s|m|h)$/u.exec(value)
  const delayMillis = Number(match?.[1]) * (unitMillis[match?.[2] ?? ""] ?? Number.NaN)
  return delayMillis <= delayMillisMax ? Option.some({ delayMillis }) : Option.none()
}

const crash = (value: string): Option.Option<Script> =>
  value === "before-submit" || value === "after-submit"
    ? Option.some({ crash: value })
    : Option.none()

/** A prompt may contain several directives anywhere. docs/reference/vendors.md#sandbox */
export const directives: Readonly<Record<string, Directive>> = {
  /** The job takes exactly this long (ms, s, m or h; at most 24h). */
  slow: {
    example: "[[sim:slow=30s]]",
    read: delay
  },
  /** This many submits are refused with 429 and a wait of one second; then one is accepted. */
  "429": {
    example: "[[sim:429=2]]",
    read: count((throttledSubmits) => ({ throttledSubmits }))
  },
  /** This many submits fail with 503 before anything is bought; then one is accepted. */
  "503": {
    example: "[[sim:503=2]]",
    read: count((failedSubmits) => ({ failedSubmits }))
  },
  /** Submit is refused for its content (task error 3001). */
  refuse: {
    example: "[[sim:refuse]]",
    read: always({ refusal: "content" })
  },
  /** Submit is refused because an input medium cannot be downloaded (task error 4002). */
  media: {
    example: "[[sim:media]]",
    read: always({ refusal: "media" })
  },
  /** Submit is refused because the service's own account is unpaid (task error 4008). */
  operator: {
    example: "[[sim:operator]]",
    read: always({ refusal: "operator" })
  },
  /** The job is bought, and the connection breaks before the response (task error 3004). */
  "lost-submit": {
    example: "[[sim:lost-submit]]",
    read: always({ isSubmitLost: true })
  },
  /** Runs the injected crash before-submit or after-submit; without one, nothing happens. */
  crash: {
    example: "[[sim:crash=after-submit]]",
    read: crash
  },
  /** Only this many of the requested items are generated. */
  partial: {
    example: "[[sim:partial=1]]",
    read: count((itemsMax) => ({ itemsMax }))
  },
  /** The job runs forever. */
  hang: {
    example: "[[sim:hang]]",
    read: always({ ending: "hang" })
  },
  /** The job fails at its end (task error 3005). */
  fail: {
    example: "[[sim:fail]]",
    read: always({ ending: "fail" })
  },
  /** The vendor gives up the job at its end (task error 3003). */
  timeout: {
    example: "[[sim:timeout]]",
    read: always({ ending: "timeout" })
  },
  /** At its end the vendor no longer knows the job (task error 3004). */
  lost: {
    example: "[[sim:lost]]",
    read: always({ ending: "lost" })
  }
}

/** The quantifiers are bounded, so that a long prompt full of `[[sim:` is read in linear time. */
const directivePattern = /\[\[sim:([^\]=]{0,40})(?:=([^\]]{0,40}))?\]\]/gu

const faultsMax = 5

export interface Parsed {
  /** The prompt without its directives, which is what is drawn. */
  readonly text: string
  readonly script: Script
  /** The first directives that do not exist or have a wrong value, one per line. */
  readonly faults: ReadonlyArray<string>
}

/** Extracts the directives of a prompt. If two conflict, the later one wins. */
export const parse = (prompt: string): Parsed => {
  const faults: Array<string> = []
  const script: Script = {}
  for (const [whole, name = "", value = ""] of prompt.matchAll(directivePattern)) {
    const directive = Object.hasOwn(directives, name) ? directives[name] : undefined
    const read = directive?.read(value) ?? Option.none()
    if (Option.isSome(read)) Object.assign(script, read.value)
    else if (directive === undefined) faults.push(`${whole} is not a directive of the simulator`)
    else faults.push(`${whole} must have the form ${directive.example}`)
  }
  return {
    text: prompt.replaceAll(directivePattern, "").trim(),
    script,
    faults: faults.slice(0, faultsMax)
  }
}
