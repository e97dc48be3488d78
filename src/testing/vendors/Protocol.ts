import type { VendorErrorClass } from "../../vendors/VendorError.ts"
import type { AnswerOf } from "./Calls.ts"
import type { VendorRequest } from "./VendorRequest.ts"

/** A result that a vendor hosts, or sends inline. */
export interface MadeFile {
  readonly url: string
  readonly mime: string
  readonly bytes: Uint8Array
}

export interface Reply {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly json?: unknown
  /** Instead of `json`. */
  readonly bytes?: Uint8Array
  /** Instead of both: a download. */
  readonly file?: MadeFile
  /** Instead of all: server-sent events, as they come. */
  readonly events?: AsyncIterable<string>
}

/** A job bought by a submit. */
export interface Job {
  readonly id: string
  /** The vendor's id of the model. */
  readonly model: string
  /** The parsed body of the submit, or the fields of its form. */
  readonly body: unknown
  /** Where it was submitted. */
  readonly path: string
  /** Unix time, milliseconds. */
  readonly createdAt: number
  /** Ordered results. */
  readonly count: number
  /** The address that the vendor calls when the job has ended. */
  readonly callbackUrl?: string
  polls: number
  isCancelled: boolean
}

/** What a job makes. */
export type MadeKind = "image" | "video" | "audio" | "mesh" | "document"

/** The ending of a job. */
export type Ending =
  | {
      readonly _tag: "Made"
      readonly files: ReadonlyArray<MadeFile>
      /** The vendor marks the first file as unsafe. */
      readonly isFlagged?: boolean
    }
  | {
      readonly _tag: "Failed"
      readonly kind: VendorErrorClass
      readonly message: string | undefined
    }

export interface Order {
  /** Prefix of the job's id. */
  readonly prefix?: string
  readonly count?: number
  /** Instead of the parsed JSON. */
  readonly body?: unknown
  readonly callbackUrl?: string | undefined
}

/** The state of a vendor, which its protocol shows. */
export interface Vendor {
  readonly url: string
  readonly key: string
  readonly jobs: ReadonlyMap<string, Job>
  /** The jobs in a list now, oldest first. */
  readonly listedJobs: ReadonlyArray<Job>
  /** Jobs on a page of the list. */
  readonly pageSize: number
  readonly buy: (request: VendorRequest, order?: Order) => Job
  /** The job found by a poll; `undefined` if it never existed or was dropped. */
  readonly poll: (id: string) => Job | undefined
  readonly isRunning: (job: Job) => boolean
  /** Resolves when the job has ended. */
  readonly ended: (job: Job) => Promise<void>
  readonly endingOf: (job: Job, kind: MadeKind) => Ending
  readonly forget: (id: string) => boolean
  /** The test's answers of a language model. */
  readonly answerOf: AnswerOf
}

export interface Callback {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** One vendor's documented wire format. */
export interface Protocol {
  /** The accepted key, unless a test chooses another one. */
  readonly key: string
  /** Whether this request buys a job. */
  readonly isSubmit: (request: VendorRequest) => boolean
  /** The vendor's model id of a submit or call. */
  readonly modelOf: (request: VendorRequest) => string
  /** `undefined` if the vendor accepts the key of this request. */
  readonly stranger: (request: VendorRequest, key: string) => Reply | undefined
  /** How it refuses a request; `undefined` if it has no such refusal. The default message is the vendor's. */
  readonly refusal: (kind: VendorErrorClass, message?: string) => Reply | undefined
  /** How its jobs can fail. */
  readonly jobFailures: ReadonlySet<VendorErrorClass>
  /** `undefined` if the vendor does not have the path. */
  readonly respond: (request: VendorRequest, vendor: Vendor) => Reply | Promise<Reply> | undefined
  /** The signed callback of an ended job. */
  readonly callback?: (job: Job, vendor: Vendor, atMillis: number) => Callback
}

/** The files of an ending; a failed one has none. */
export const filesOf = (ending: Ending): ReadonlyArray<MadeFile> =>
  ending._tag === "Made" ? ending.files : []
