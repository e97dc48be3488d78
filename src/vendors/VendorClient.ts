import { Context, Predicate, Schema } from "effect"
import type { Duration, Effect, Option, Scope, Stream } from "effect"
import type { Described } from "../catalog/jobs/JobModel.ts"
import type { TokenUsage } from "../catalog/Price.ts"
import type { UpstreamInput } from "../catalog/UpstreamInput.ts"
import type { ResultKind } from "../domain/task/Task.ts"
import type { CallbackScheme } from "./CallbackScheme.ts"
import type { VendorError } from "./VendorError.ts"

/** One input medium of a task, checked and stored as an artifact. docs/reference/models.md#stored-media */
export interface SubmitMedium {
  /** Its place in the body, as a JSON pointer: `#/images/0`. */
  readonly pointer: string
  /** Detected from magic bytes, not as declared. */
  readonly mime: string
  /** Bytes. */
  readonly size: number
  /**
   * The client's URL from which it was fetched. Absent if the medium was inline, or if the URL contains more than the
   * medium.
   */
  readonly sourceUrl?: string
  /** A signed URL, valid for 24 hours. It can be fetched from outside if `BASE_URL` is public. */
  readonly artifactUrl: string
  /** Reads it from the artifact store each time, so that it is in memory only while it is used. */
  readonly bytes: Effect.Effect<Uint8Array, VendorError>
}

/** The file of a batch. It is never in memory as a whole. */
export interface SubmitFile {
  readonly bytes: number
  /** Opens the file at its beginning. */
  readonly open: Effect.Effect<Stream.Stream<Uint8Array, VendorError>, VendorError>
}

/** The input of a submit. `body` is the decoded body with all defaults. */
export interface SubmitRequest {
  /** Unique, usable as an external id. */
  readonly taskId: string
  /** The label, such as `text-to-image-max`. */
  readonly model: string
  /** The upstream's own model id. */
  readonly upstreamModel: string
  /**
   * For a background response, a `ResponseBody`. Media appear in the body as the client's URL or as `artifact:art_…`;
   * `media` holds them by pointer.
   */
  readonly body: unknown
  /** All media of the body, in order. Empty when a submit is reconciled. */
  readonly media: ReadonlyArray<SubmitMedium>
  /** For `fal-queue` and `replicate`: the upstream names of the fields. */
  readonly input?: UpstreamInput
  readonly result: ResultKind
  /** For `fal-queue` and `replicate`: the fields of the output that hold the results. */
  readonly output?: ReadonlyArray<string>
  /** The request template of a described vendor's model. */
  readonly described?: Described
  /** The requests of a batch, one per line. Absent when a submit is reconciled. */
  readonly file?: SubmitFile
  /** The value that `prepare` returned for this account. */
  readonly prepared?: string
  /** Where the vendor sends the callback when the job has ended, if it has callbacks. ADR 0107. */
  readonly callbackUrl?: string
}

/** Opaque JSON with which the adapter polls or cancels the job; stored with the task. */
export type Handle = Readonly<Record<string, Schema.Json>>

const isHandle = (value: unknown): value is Handle => Predicate.isObject(value)

/** Not validated member by member: it comes from a JSON column, every poll reads one, and the adapter decodes it. */
export const Handle = Schema.declare(isHandle, { expected: "an object of JSON" })

/** A result that the vendor hosts. */
export interface UrlItem {
  readonly _tag: "Url"
  readonly url: string
  readonly mime: string
  /** The URL requires the key of the account, so the result is always copied. */
  readonly needsAuth: boolean
  /** The vendor deletes it within 24 hours, so the result is always copied. */
  readonly isShortLived?: boolean
}

/** One result: bytes, a URL of the vendor, or (`Kept`) an artifact of the service. */
export type ResultItem =
  | { readonly _tag: "Bytes"; readonly bytes: Uint8Array; readonly mime: string }
  | UrlItem
  | { readonly _tag: "Kept"; readonly url: string }

/** The vendor's progress report for a batch. */
export interface BatchProgress {
  readonly status: "validating" | "in_progress" | "finalizing" | "cancelling"
  /** Completed requests. */
  readonly completed: number
  readonly failed: number
}

/** How a batch ended, and the files with its results. */
export interface BatchResult {
  readonly status: "completed" | "expired" | "cancelled"
  readonly completed: number
  readonly failed: number
  /** Absent if the vendor made no file, or if the simulator computes the output from the requests. */
  readonly output?: UrlItem
  readonly errors?: UrlItem
  /** The prefix that the adapter put before each `custom_id`. Results without it do not belong to this task's batch. */
  readonly mark?: string
}

export interface VendorResult {
  readonly items: ReadonlyArray<ResultItem>
  readonly batch?: BatchResult
  /** The tokens to charge for a response. */
  readonly tokens?: VendorTokens
  /** Figures for prices that are expressions. */
  readonly usage?: Readonly<Record<string, string | number>>
  /** What the simulator measures of its results, which a played vendor reports as its figures of these names. */
  readonly rendered?: Readonly<Record<string, number>>
}

/** The tokens of a response, and the model that the response names. */
export interface VendorTokens {
  /** The vendor's figures, if it reported any. */
  readonly usage?: TokenUsage
  /** Estimated at four bytes per token. Used if the figures are missing or impossible. */
  readonly counted: TokenUsage
  readonly responder?: string
  /** How the response ended. A cancelled response fails its task, and its usage is charged. */
  readonly end: "completed" | "incomplete" | "cancelled"
}

/** Outcome of a submit: a running job, or the result of a blocking call. */
export type Submitted =
  | { readonly _tag: "Accepted"; readonly handle: Handle; readonly pollAfter: Duration.Duration }
  | { readonly _tag: "Done"; readonly result: VendorResult }

/** Outcome of a poll. */
export type Progress =
  | {
      readonly _tag: "Running"
      readonly pollAfter: Duration.Duration
      readonly batch?: BatchProgress
      /** What the vendor reports, from 0 to 100. */
      readonly percent?: number | undefined
      /** What the simulator knows, which a played vendor reports. */
      readonly rendered?: number
    }
  | { readonly _tag: "Done"; readonly result: VendorResult }

export type CancelOutcome = "Canceled" | "TooLate" | "Unsupported"

/**
 * Whether a listed job belongs to a request. `same`: it shows the request. `open`: it does not yet show enough to
 * decide. `unsure`: it will never show enough, so the job is not used. `other`: it belongs to another request.
 */
export type Likeness = "same" | "open" | "unsure" | "other"

/** A job in the vendor's list. */
export interface ListedJob {
  /** The vendor's id of the job, unique within the account. */
  readonly jobId: string
  readonly createdAtMillis: number
  readonly compare: (request: SubmitRequest) => Likeness
  /** The handle for polls, as a submit of this request would have recorded it. */
  readonly handle: (request: SubmitRequest) => Handle
  /** The callback URL with which the job was submitted, if the list shows it. */
  readonly callbackUrl?: string
  /** Reads the job's own record, if it shows more than the list. Absent if it does not. */
  readonly read?: Effect.Effect<ListedJob, VendorError>
}

/** Which jobs to list. */
export interface ListQuery {
  /** Lists at least the jobs that may belong to one of these requests. */
  readonly requests: ReadonlyArray<SubmitRequest>
  /** Creation times of the jobs by the vendor's clock, in milliseconds. */
  readonly from: number
  readonly until: number
}

/** At most `calls` in `perMillis`, over all processes. */
export interface Rate {
  /** Calls with the same key are counted together, such as `dashscope:3f2a/polls`. */
  readonly key: string
  readonly calls: number
  readonly perMillis: number
}

/** At most `max` jobs at once, over all processes. */
export interface SlotLimit {
  /** Jobs of the same line are counted together, such as `dashscope:3f2a/wan2.5-t2i-preview`. */
  readonly line: string
  readonly max: number
}

/** The operations of one account, through one adapter. */
export interface VendorAccount {
  /** Stored with every attempt, so that polls go to the account that owns the job. Not a secret. */
  readonly accountId: string
  /**
   * Prepares a submit at no cost, for example by uploading the file of a batch. It may be repeated. Its return value is
   * stored before the submit.
   */
  readonly prepare?: (request: SubmitRequest) => Effect.Effect<string, VendorError>
  /** Buys the job. It does not retry; the class of a failure says whether a retry is safe. */
  readonly submit: (request: SubmitRequest) => Effect.Effect<Submitted, VendorError>
  /** Polls the job. Free and repeatable. */
  readonly poll: (handle: Handle) => Effect.Effect<Progress, VendorError>
  readonly cancel: (handle: Handle) => Effect.Effect<CancelOutcome, VendorError>
  /** All jobs of the query, or a failure. Absent when the vendor cannot list jobs. ADR 0194. */
  readonly list?: (query: ListQuery) => Effect.Effect<ReadonlyArray<ListedJob>, VendorError>
  /** Whether this is the simulator, whose operator faults need no action by the operator. */
  readonly isSimulated?: boolean
  /** Whether the operator has excluded the account from new jobs. docs/reference/vendors.md#draining-an-account */
  readonly isDraining?: () => boolean
  /** The documented rate of the vendor; `undefined` when none is known. */
  readonly rateOf?: (act: "submit" | "poll", upstreamModel: string) => Rate | undefined
  /** Jobs that may run at once: the operator's limit, else the vendor's; `undefined` means no limit. */
  readonly slotsOf?: (upstreamModel: string) => SlotLimit | undefined
  /** Simulator and tests only: computes the result line for one request line of a batch. */
  readonly answerLine?: (endpoint: string, line: Uint8Array) => Uint8Array
  /** Whether polls may report progress. */
  readonly showsProgress?: boolean
  /** Whether polls report that a response or a batch was cancelled, and its usage. */
  readonly showsCancelled?: boolean
  /** The URL for the events of a response after the event with this number. */
  readonly eventsUrl?: (handle: Handle, after?: number) => Effect.Effect<string, VendorError>
  /** Opens the events of a response as server-sent events; absent if the vendor has none. Closed with the scope. */
  readonly events?: (
    handle: Handle,
    after?: number
  ) => Effect.Effect<Stream.Stream<Uint8Array, VendorError>, VendorError, Scope.Scope>
  /** How the vendor's callbacks are verified. Absent if it has none. ADR 0107. */
  readonly callbacks?: CallbackScheme
  /**
   * Downloads a result from the account's own origin, with the key if it is required. `None` for any other origin: the
   * download then goes through the egress guard without the key.
   */
  readonly download?: (
    item: UrlItem
  ) => Effect.Effect<Option.Option<Download>, VendorError, Scope.Scope>
}

/** A running download. It closes with the scope. */
export interface Download {
  /** The media type that the vendor declares. */
  readonly mime: string
  /** `Content-Length`, if the vendor sent it. */
  readonly announced?: number
  readonly stream: Stream.Stream<Uint8Array, VendorError>
}

/** The properties of a new job that determine its account; part of a catalog entry. */
export interface ChosenFor {
  readonly adapter: string
  /** The upstream's own model id, by which the vendor counts rates. */
  readonly upstreamModel: string
}

/** Selects vendor accounts. */
export class VendorClient extends Context.Service<
  VendorClient,
  {
    /**
     * An account for a new job of this model. With `onlyFree`, fails as `RATE_LIMITED` or `RETRYABLE` (circuit open) if
     * no account may be called now. Otherwise returns the account that is free first.
     */
    readonly choose: (
      entry: ChosenFor,
      options?: { readonly onlyFree: boolean }
    ) => Effect.Effect<VendorAccount, VendorError>
    /** Whether some account has the model, or the simulator serves it. ADR 0070. */
    readonly isServed: (entry: ChosenFor) => boolean
    /** All accounts that may have bought a job of this model. Empty if the simulator serves it. */
    readonly accountsFor: (entry: ChosenFor) => ReadonlyArray<VendorAccount>
    /** The account that owns a running job. */
    readonly owner: (accountId: string) => Effect.Effect<VendorAccount, VendorError>
    /**
     * Whether the simulator serves the adapter's models, because no key is configured.
     * docs/reference/vendors.md#sandbox
     */
    readonly isSandbox: (adapter: string) => boolean
  }
>()("gateway/vendors/VendorClient") {}
