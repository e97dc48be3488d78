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

/** Resident actors of one process: above it wake-ups are refused and found again by the sweeps. */
const actorsMax = 50_000

/**
 * At shutdown actors may go on for so long, then they hand back what they do. The default of 15
 * seconds would be waited out: a task runs for minutes, and its next owner is to start at once.
 */
const handBackAfter = Duration.millis(500)

/**
 * Placement of the actors in this one process. All messages are volatile and the tables hold the
 * truth, so nothing is stored here (architecture, measurements).
 */
export const layerSingle = Sharding.layer.pipe(
  Layer.provideMerge(Runners.layerNoop),
  Layer.provide([MessageStorage.layerNoop, RunnerStorage.layerMemory, RunnerHealth.layerNoop]),
  Layer.provide(
    ShardingConfig.layer({
      maxResidentEntities: actorsMax,
      simulateRemoteSerialization: false,
      entityMailboxCapacity: 64,
      entityTerminationTimeout: handBackAfter
    })
  ),
  Layer.provide(Digest.layerWebCrypto)
)
