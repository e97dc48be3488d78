import { Context, Effect, Layer, Option, Stream } from "effect"
import { PendingAudit } from "../../db/Audited.ts"
import type { PendingEntry } from "../../db/Audited.ts"
import type { ScannedPage } from "../../db/ListScan.ts"
import { retryStore } from "../../db/StoreFailures.ts"
import { AuditId } from "../../domain/Ids.ts"
import { ledgerExportRowsMax } from "../../domain/limits/Limits.ts"
import type { StoreUnavailable } from "../../domain/Problem.ts"
import { AuditStore } from "./AuditStore.ts"
import type { AuditPage, AuditRow } from "./AuditStore.ts"

export { changesNothing, readsOf, readsOfSome } from "../../db/Audited.ts"
export type { PendingEntry } from "../../db/Audited.ts"
export type { AuditPage, AuditRow } from "./AuditStore.ts"

export type AuditFilters = Omit<AuditPage, "before" | "limit">

/** Records who changed or read what through the management API. docs/reference/audit.md, ADR 0168. */
export class AuditLog extends Context.Service<
  AuditLog,
  {
    /**
     * Runs a request. A store that changes something writes the entry in the same transaction. If no store did, the
     * entry is written after the request has succeeded.
     */
    readonly around: (
      entry: PendingEntry
    ) => <A, E, R>(request: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
    /** Newest first. */
    readonly list: (page: AuditPage) => Effect.Effect<ScannedPage<AuditRow>, StoreUnavailable>
    /** All entries that match the filters, newest first, read page by page. */
    readonly all: (filters: AuditFilters) => Stream.Stream<AuditRow, StoreUnavailable>
  }
>()("gateway/process/AuditLog") {
  static readonly layer = Layer.effect(
    AuditLog,
    Effect.map(AuditStore, (store) =>
      AuditLog.of({
        around: (entry) => (request) =>
          request.pipe(
            Effect.provideService(PendingAudit, Option.some(entry)),
            Effect.tap(() =>
              entry.isDone ? Effect.void : Effect.uninterruptible(retryStore(store.append(entry)))
            )
          ),
        list: store.list,
        all: (filters) =>
          Stream.paginate(Option.none<AuditId>(), (before) =>
            Effect.map(store.list({ ...filters, before, limit: ledgerExportRowsMax }), (page) => {
              const { end, rows } = page
              const last = rows.length < ledgerExportRowsMax ? end : rows.at(-1)?.id
              const next = Option.map(Option.fromNullishOr(last), (id) => AuditId.make(id))
              return [rows, Option.map(next, Option.some)] as const
            })
          )
      })
    )
  )
}
