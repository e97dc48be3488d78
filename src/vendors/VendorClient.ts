import { Context, Schema } from "effect"
import type { Duration, Effect, Option, Scope, Stream } from "effect"
import type { UpstreamInput } from "../catalog/UpstreamInput.ts"
import type { CallbackScheme } from "./CallbackScheme.ts"
import type { VendorError } from "./VendorError.ts"

/**
 * One input medium of a task: fetched or taken from the body, checked against the rules of its field,
 * and kept as an artifact. Contract 5.
 */
export interface SubmitMedium {
  /** Where it stands in the body, as `mapMedia` of catalog/media/Media.ts names it: `#/images/0`. */
  readonly pointer: string
  /** By magic bytes, never as declared. */
  readonly mime: string
  /** Bytes. */
  readonly size: number
  /** Where the client keeps it; absent when it came inline. It was reachable a moment ago. */
  readonly sourceUrl?: string
  /** Where anybody who is given this URL may fetch it for 24 hours, as far as `BASE_URL` is public. */
  readonly artifactUrl: string
  /** Read from the artifact store at each run, so that nobody holds it longer than needed. */
  readonly bytes: Effect.Effect<Uint8Array, VendorError>
}

/** What a paid submit needs. `body` is the decoded model body with all defaults filled in. */
export interface SubmitRequest {
  /** Id of the task: unique, fit as an external id or a simulator's key. */
  readonly taskId: string
  /** Catalog label, such as `text-to-image-max`. */
  readonly model: string
  /** The upstream's own model id. */
  readonly upstreamModel: string
  /** Media stand in it as the client's URL, or as `artifact:art_…`: see `media` by pointer. */
  readonly body: unknown
  /** All media of the body, in its order. Empty when a submit is reconciled. */
  readonly media: ReadonlyArray<SubmitMedium>
  /** How the generic families name the fields upstream: data of the catalog. */
  readonly input?: UpstreamInput
  /** Where the vendor is to call when the job has ended, if it does such things. ADR 0107. */
  readonly callbackUrl?: string
}

/** An opaque JSON value that the adapter needs to poll or cancel the job; stored with the task. */
export const Handle = Schema.Record(Schema.String, Schema.Json)
export type Handle = typeof Handle.Type

/** A result that lies somewhere under a URL. */
export interface UrlItem {
  readonly _tag: "Url"
  readonly url: string
  readonly mime: string
  /** The URL opens with the vendor's key only, so it must be copied. */
  readonly needsAuth: boolean
  /** The vendor keeps it for less than the 24 hours that the service promises: copied too. */
  readonly isShortLived?: boolean
}

/** One produced medium: bytes, a URL that the vendor keeps for a while, or what the service keeps. */
export type ResultItem =
  | { readonly _tag: "Bytes"; readonly bytes: Uint8Array; readonly mime: string }
  | UrlItem
  | { readonly _tag: "Kept"; readonly url: string }

export interface VendorResult {
  readonly items: ReadonlyArray<ResultItem>
}

/** Answer to a submit: a job that runs, or (for blocking calls) the result itself. */
export type Submitted =
  | { readonly _tag: "Accepted"; readonly handle: Handle; readonly pollAfter: Duration.Duration }
  | { readonly _tag: "Done"; readonly result: VendorResult }

/** Answer to a poll. */
export type Progress =
  | { readonly _tag: "Running"; readonly pollAfter: Duration.Duration }
  | { readonly _tag: "Done"; readonly result: VendorResult }

export type CancelOutcome = "Canceled" | "TooLate" | "Unsupported"

/** A job that may be the one whose submit was not recorded. */
export interface Candidate {
  readonly handle: Handle
  /** The vendor's own id of the job: unique within the account. */
  readonly jobId: string
}

/** So many calls in so long, counted over all processes that share the key. */
export interface Rate {
  /** Whose calls are counted together, such as `dashscope:3f2a/polls`. */
  readonly key: string
  readonly calls: number
  readonly perMillis: number
}

/** So many jobs at once, counted over all processes that share the key. */
export interface SlotLimit {
  /** Whose jobs are counted together, such as `dashscope:3f2a/wan2.5-t2i-preview`. */
  readonly line: string
  readonly max: number
}

/** What an account can be asked to do. One instance speaks one protocol family to one account. */
export interface VendorAccount {
  /** Stored with every attempt, so that polls go to the account that owns the job. Never a secret. */
  readonly accountId: string
  /** Buys the job. Never retried by itself; a failure says by its class whether that is safe. */
  readonly submit: (request: SubmitRequest) => Effect.Effect<Submitted, VendorError>
  /** Free to repeat. */
  readonly poll: (handle: Handle) => Effect.Effect<Progress, VendorError>
  readonly cancel: (handle: Handle) => Effect.Effect<CancelOutcome, VendorError>
  /**
   * Looks for the job of a submit that was begun then and not recorded: all that could be it. Nothing
   * when the vendor cannot list or has none. The caller knows which of them belong to other tasks.
   */
  readonly reconcile: (
    request: SubmitRequest,
    startedAtMillis: number
  ) => Effect.Effect<ReadonlyArray<Candidate>, VendorError>
  /** Its faults are pretended: there is nothing that the operator could mend. */
  readonly isPretended?: boolean
  /** The vendor can list its jobs, so that looking again may find what was not there a moment ago. */
  readonly canList?: boolean
  /** Limits that the vendor sets; absent means none is known. */
  readonly rateOf?: (act: "submit" | "poll", upstreamModel: string) => Rate | undefined
  /** How many jobs may run at once: the operator's limit, or the vendor's; absent means no limit. */
  readonly slotsOf?: (upstreamModel: string) => SlotLimit | undefined
  /** How its calls about jobs are verified; absent: the vendor makes none. ADR 0107. */
  readonly callbacks?: CallbackScheme
  /**
   * Fetches a result that lies at the account's own origin, with the key if it needs it. `None`: it
   * lies elsewhere, so the key is not sent and the egress guard decides.
   */
  readonly download?: (
    item: UrlItem
  ) => Effect.Effect<Option.Option<Download>, VendorError, Scope.Scope>
}

/** A result on its way, let go when the scope closes. */
export interface Download {
  /** As the vendor declares it. */
  readonly mime: string
  /** How many bytes will come, where that is told. */
  readonly announced?: number
  readonly stream: Stream.Stream<Uint8Array, VendorError>
}

/** The door to all vendor accounts. */
export class VendorClient extends Context.Service<
  VendorClient,
  {
    /** The account that a new job of this adapter family and vendor goes to. */
    readonly choose: (vendor: string, adapter: string) => Effect.Effect<VendorAccount, VendorError>
    /** The account that owns a running job. */
    readonly owner: (accountId: string) => Effect.Effect<VendorAccount, VendorError>
    /** No key is configured for this vendor and family: the simulator serves it. Contract 7. */
    readonly isSandbox: (vendor: string, adapter: string) => boolean
  }
>()("gateway/vendors/VendorClient") {}
