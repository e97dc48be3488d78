import { Context, DateTime, Effect, Layer, Option } from "effect"
import { DatabaseClock } from "../../db/DatabaseClock.ts"
import { ownerDeadSeconds } from "../../domain/limits/Limits.ts"
import type { StoreUnavailable } from "../../domain/Problem.ts"
import { encryptsUnder } from "../heartbeat/ProcessId.ts"
import { ProcessStore } from "../heartbeat/ProcessStore.ts"
import { SealedValueStore, sealedColumns } from "./SealedValueStore.ts"
import type { SealedColumn, SealedValue } from "./SealedValueStore.ts"
import { Secrets } from "./Secrets.ts"

/** A value that no key can decrypt, as `table.column key`. */
export type UnreadableValue = string

/** The result of a complete rotation, after which every readable value is encrypted under the first key. */
export interface RotationOutcome {
  readonly rewritten: number
  readonly unreadable: ReadonlyArray<UnreadableValue>
}

/**
 * Re-encrypts all stored secrets under the first key of `MASTER_KEY`. It can be repeated, and the service may keep
 * running. docs/operating.md#rotating-master_key, ADR 0222
 */
export class MasterKeyRotation extends Context.Service<
  MasterKeyRotation,
  {
    /** `onPage` receives the number of values rewritten since its last call. */
    readonly rotate: (
      onPage: (rewritten: number) => Effect.Effect<void>
    ) => Effect.Effect<RotationOutcome, StoreUnavailable>
    /**
     * Live processes that encrypt under a key other than the first one. What they write is not under the new key, and
     * some of them cannot read it. ADR 0222
     */
    readonly stragglers: Effect.Effect<ReadonlyArray<string>, StoreUnavailable>
  }
>()("gateway/process/MasterKeyRotation") {
  static readonly layer = Layer.effect(
    MasterKeyRotation,
    Effect.gen(function* () {
      const secrets = yield* Secrets
      const store = yield* SealedValueStore
      const processes = yield* ProcessStore
      const clock = yield* DatabaseClock

      const reencrypt = Effect.fnUntraced(function* (column: SealedColumn, value: SealedValue) {
        const sealed = yield* Effect.option(secrets.reencrypt(value.sealed))
        if (Option.isNone(sealed)) return { rewritten: 0, unreadable: [nameOf(column, value)] }
        if (Option.isNone(sealed.value)) return { rewritten: 0, unreadable: [] }
        // The value has changed in the meantime; the next pass reads it again
        yield* store.replace(column, value, sealed.value.value)
        return { rewritten: 1, unreadable: [] }
      })

      const pass = Effect.fnUntraced(function* (
        onPage: (rewritten: number) => Effect.Effect<void>
      ) {
        let outcome: RotationOutcome = { rewritten: 0, unreadable: [] }
        for (const column of sealedColumns) {
          let after = { first: "", second: "" }
          for (;;) {
            const values = yield* store.page(column, after, pageSize)
            const page = sumOf(
              yield* Effect.forEach(values, (value) => reencrypt(column, value), { concurrency: 4 })
            )
            outcome = sumOf([outcome, page])
            if (page.rewritten > 0) yield* onPage(page.rewritten)
            const last = values.at(-1)
            if (last === undefined || values.length < pageSize) break
            after = last
          }
        }
        return outcome
      })

      return MasterKeyRotation.of({
        stragglers: Effect.gen(function* () {
          const since = DateTime.subtract(yield* clock.now, { seconds: ownerDeadSeconds })
          const alive = yield* processes.alive(since)
          return alive.filter((id) => !encryptsUnder(secrets, id))
        }),
        rotate: Effect.fn("MasterKeyRotation.rotate")(function* (onPage) {
          let rewritten = 0
          for (;;) {
            // Only a pass that finds nothing proves that nothing is left
            const found = yield* pass(onPage)
            if (found.rewritten === 0) return { rewritten, unreadable: found.unreadable }
            rewritten += found.rewritten
          }
        })
      })
    })
  ).pipe(Layer.provide(Layer.merge(SealedValueStore.layer, ProcessStore.layer)))
}

const pageSize = 500

const sumOf = (parts: ReadonlyArray<RotationOutcome>): RotationOutcome => ({
  rewritten: parts.reduce((sum, part) => sum + part.rewritten, 0),
  unreadable: parts.flatMap((part) => part.unreadable)
})

const nameOf = ({ column, table }: SealedColumn, { first, second }: SealedValue): UnreadableValue =>
  `${table}.${column} ${[first, second].filter((part) => part !== "").join(" ")}`
