import { Duration, Layer } from "effect"
import {
  MessageStorage,
  RunnerHealth,
  Runners,
  RunnerStorage,
  Sharding,
  ShardingConfig
} from "effect/cluster"
import { Digest } from "effect/crypto"

/**
 * Resident actors of one process. Above it messages are refused; their work is found by the `Rescuer`
 * and the `DeliveryScheduler`.
 */
const actorsMax = 50_000

/**
 * At shutdown an actor may go on for so long, then it is interrupted and releases what it owns. The
 * default of 15 seconds would always be used up, because a task runs for minutes; its next owner would
 * start that much later.
 */
const terminationTimeout = Duration.millis(500)

/**
 * Runs all actors in this process. Messages are volatile and the tables hold the state, so nothing is
 * stored here: persisted cluster messages cost 3 to 5 SQL statements each.
 */
export const layerSingle = Sharding.layer.pipe(
  Layer.provideMerge(Runners.layerNoop),
  Layer.provide([MessageStorage.layerNoop, RunnerStorage.layerMemory, RunnerHealth.layerNoop]),
  Layer.provide(
    ShardingConfig.layer({
      maxResidentEntities: actorsMax,
      simulateRemoteSerialization: false,
      entityMailboxCapacity: 64,
      entityTerminationTimeout: terminationTimeout
    })
  ),
  Layer.provide(Digest.layerWebCrypto)
)
