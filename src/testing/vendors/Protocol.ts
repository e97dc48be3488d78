import type { VendorErrorClass } from "../../vendors/VendorError.ts"
import type { AnswerOf } from "./Calls.ts"
import type { VendorRequest } from "./VendorRequest.ts"

/** A result that a vendor hosts or returns inline. */
export interface MadeFile {
  readonly url: string
  readonly mime: string
  readonly bytes: Uint8Array
}

export interface Reply {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly json?: unknown
  /** Sent instead of `json`. */
  readonly bytes?: Uint8Array
  /** Sent instead of both: a download. */
  readonly file?: MadeFile
  /** Sent instead of all others: server-sent events. */
  readonly events?: AsyncIterable<string>
}

/** A job that a submit bought. */
export interface Job {
  readonly id: string
  /** The vendor's id of the model. */
  readonly model: string
  /** The parsed body of the submit, or the fields of its form. */
  readonly body: unknown
  /** The path to which it was submitted. */
  readonly path: string
  /** Unix time in milliseconds. */
  readonly createdAt: number
  /** The number of results ordered. */
  readonly count: number
  /** The URL that the vendor calls when the job has ended. */
  readonly callbackUrl?: string
  polls: number
  isCancelled: boolean
}

/** The kinds of results. */
export type MadeKind = "image" | "video" | "audio" | "mesh" | "document"

/** How a job ends. */
export type Ending =
  | {
      readonly _tag: "Made"
      readonly files: ReadonlyArray<MadeFile>
      /** Whether the vendor marks the first file as unsafe. */
      readonly isFlagged?: boolean
    }
  | {
      readonly _tag: "Failed"
      readonly kind: VendorErrorClass
      readonly message: string | undefined
    }

export interface Order {
  /** The prefix of the job's id. */
  readonly prefix?: string
  readonly count?: number
  /** The body to use instead of the parsed JSON. */
  readonly body?: unknown
  readonly callbackUrl?: string | undefined
}

/** The state of a vendor that its protocol exposes. */
export interface Vendor {
  readonly url: string
  readonly key: string
  readonly jobs: ReadonlyMap<string, Job>
  /** The jobs that a list shows now, oldest first. */
  readonly listedJobs: ReadonlyArray<Job>
  /** The number of jobs per page of the list. */
  readonly pageSize: number
  readonly buy: (request: VendorRequest, order?: Order) => Job
  /** Finds a job for a poll. `undefined`: the job never existed or was dropped. */
  readonly poll: (id: string) => Job | undefined
  readonly isRunning: (job: Job) => boolean
  /** Resolves when the job has ended. */
  readonly ended: (job: Job) => Promise<void>
  readonly endingOf: (job: Job, kind: MadeKind) => Ending
  readonly forget: (id: string) => boolean
  /** The language-model responses that the test set. */
  readonly answerOf: AnswerOf
}

export interface Callback {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** One vendor's documented wire format. */
export interface Protocol {
  /** The key that is accepted, unless a test chooses another one. */
  readonly key: string
  /** Whether this request buys a job. */
  readonly isSubmit: (request: VendorRequest) => boolean
  /** The vendor's model id in a submit or call. */
  readonly modelOf: (request: VendorRequest) => string
  /** The refusal of a request with a wrong key; `undefined` if the key is accepted. */
  readonly stranger: (request: VendorRequest, key: string) => Reply | undefined
  /**
   * The refusal for a class of error; `undefined` if the vendor has no such refusal. The default message is the
   * vendor's.
   */
  readonly refusal: (kind: VendorErrorClass, message?: string) => Reply | undefined
  /** The classes of errors with which its jobs can fail. */
  readonly jobFailures: ReadonlySet<VendorErrorClass>
  /** Responds to a request. `undefined`: the vendor does not have the path. */
  readonly respond: (request: VendorRequest, vendor: Vendor) => Reply | Promise<Reply> | undefined
  /** The signed callback of an ended job. */
  readonly callback?: (job: Job, vendor: Vendor, atMillis: number) => Callback
}

/** The files of an ending. A failed job has none. */
export const filesOf = (ending: Ending): ReadonlyArray<MadeFile> =>
  ending._tag === "Made" ? ending.files : []
