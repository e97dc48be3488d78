import { Layer } from "effect"
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
      entityMailboxCapacity: 64
    })
  ),
  Layer.provide(Digest.layerWebCrypto)
)
