/** What a program got that created a task and polled for it with a generated client. */
export interface Outcome {
  readonly id: string
  readonly status: string
  readonly images: ReadonlyArray<string>
  /** The price that `dry_run` returned, read with the client's own types. */
  readonly quote: string
}

export interface Gateway {
  readonly url: string
  readonly key: string
}

/** The body that each program sends. */
export const body = { prompt: "A lighthouse at dawn", size: "1328*1328", seed: 7 } as const

export const pause = () => new Promise<void>((resolve) => setTimeout(resolve, 50))
