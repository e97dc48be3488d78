import { Option, Schema } from "effect"

/** What directives in a prompt ask of the simulator; an empty script is an ordinary job. */
export interface Script {
  /** Submits that are refused with 429, and with 503, before one is accepted. */
  readonly throttledSubmits?: number
  readonly failedSubmits?: number
  /** Submit is refused for good. */
  readonly refusal?: "content" | "media" | "operator"
  readonly isSubmitLost?: boolean
  readonly crash?: CrashPoint
  readonly delayMillis?: number
  readonly itemsMax?: number
  /** How the job ends, when not well. */
  readonly ending?: Ending
}

type CrashPoint = "before-submit" | "after-submit"

/** How a job ends; `hang` never does. */
export const Ending = Schema.Literals(["done", "fail", "timeout", "lost", "hang"])
export type Ending = typeof Ending.Type

export interface Directive {
  /** How it is written in a prompt. */
  readonly example: string
  readonly does: string
  /** Reads what stands behind `=`, or the empty text. */
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

/** Every directive. Several may stand in one prompt, anywhere in it. Contract 7. */
export const directives: Readonly<Record<string, Directive>> = {
  slow: {
    example: "[[sim:slow=30s]]",
    does: "The job takes exactly so long (ms, s, m or h; at most 24h)",
    read: delay
  },
  "429": {
    example: "[[sim:429=2]]",
    does: "That many submits are refused with 429 and a wait of one second, then one is accepted",
    read: count((throttledSubmits) => ({ throttledSubmits }))
  },
  "503": {
    example: "[[sim:503=2]]",
    does: "That many submits fail with 503 before anything is bought, then one is accepted",
    read: count((failedSubmits) => ({ failedSubmits }))
  },
  refuse: {
    example: "[[sim:refuse]]",
    does: "Submit is refused for its content (task error 3001)",
    read: always({ refusal: "content" })
  },
  media: {
    example: "[[sim:media]]",
    does: "Submit is refused because an input medium cannot be downloaded (task error 4002)",
    read: always({ refusal: "media" })
  },
  operator: {
    example: "[[sim:operator]]",
    does: "Submit is refused because the service's own account is unpaid (task error 4008)",
    read: always({ refusal: "operator" })
  },
  "lost-submit": {
    example: "[[sim:lost-submit]]",
    does: "The job is bought, and the connection breaks before the answer (task error 3004)",
    read: always({ isSubmitLost: true })
  },
  crash: {
    example: "[[sim:crash=after-submit]]",
    does: "Runs the injected crash before-submit or after-submit; without one, nothing happens",
    read: crash
  },
  partial: {
    example: "[[sim:partial=1]]",
    does: "Only that many of the items asked for are made",
    read: count((itemsMax) => ({ itemsMax }))
  },
  hang: {
    example: "[[sim:hang]]",
    does: "The job runs for ever",
    read: always({ ending: "hang" })
  },
  fail: {
    example: "[[sim:fail]]",
    does: "The job fails at the end of its time (task error 3005)",
    read: always({ ending: "fail" })
  },
  timeout: {
    example: "[[sim:timeout]]",
    does: "The vendor gives the job up at the end of its time (task error 3003)",
    read: always({ ending: "timeout" })
  },
  lost: {
    example: "[[sim:lost]]",
    does: "The vendor no longer knows the job at the end of its time (task error 3004)",
    read: always({ ending: "lost" })
  }
}

/** Bounded, so that a long prompt full of openings is read in linear time. */
const written = /\[\[sim:([^\]=]{0,40})(?:=([^\]]{0,40}))?\]\]/gu

const faultsMax = 5

export interface Parsed {
  /** The prompt without its directives: what is drawn. */
  readonly text: string
  readonly script: Script
  /** A line for each of the first directives that do not exist or have a wrong value. */
  readonly faults: ReadonlyArray<string>
}

/** Takes the directives out of a prompt. Of two that disagree the later one holds. */
export const parse = (prompt: string): Parsed => {
  const faults: Array<string> = []
  const script: Script = {}
  for (const [whole, name = "", value = ""] of prompt.matchAll(written)) {
    const directive = Object.hasOwn(directives, name) ? directives[name] : undefined
    const read = directive?.read(value) ?? Option.none()
    if (Option.isSome(read)) Object.assign(script, read.value)
    else if (directive === undefined) faults.push(`${whole} is no directive of the simulator`)
    else faults.push(`${whole} is written like ${directive.example}`)
  }
  return {
    text: prompt.replaceAll(written, "").trim(),
    script,
    faults: faults.slice(0, faultsMax)
  }
}
