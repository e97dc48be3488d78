import { pause } from "./processes.ts"
import type { ServiceProcess } from "./processes.ts"
import { freeProcess, holding, lasting } from "./world.ts"
import type { Fault, World } from "./world.ts"

const seconds = (millis: number) => `${(millis / 1000).toFixed(1)} s`

const ownedByDead = `SELECT count(*)::int AS n FROM (
    SELECT owner FROM runs WHERE owner IS NOT NULL
    UNION ALL SELECT owner FROM delivery_queue WHERE owner IS NOT NULL
  ) o JOIN processes p ON p.id = o.owner
  WHERE p.heartbeat_at < to_timestamp($1) AND p.heartbeat_at < clock_timestamp() - interval '3 seconds'`

/** Measures the time from the death of a process until others have taken over its work. */
const measureTakeover = async (world: World, diedAt: number): Promise<void> => {
  const count = async () => {
    const [row] = await world.postgres.query<{ n: number }>(ownedByDead, [diedAt / 1000 + 0.2])
    return row?.n ?? 0
  }
  let beside = world.inHand.size - 1
  await pause(4500)
  const owned = await count()
  if (owned === 0) return
  while (!world.isOver() && Date.now() - diedAt < 90_000) {
    beside = Math.max(beside, world.inHand.size - 1)
    if ((await count()) === 0) {
      world.takeovers.push({ owned, seconds: (Date.now() - diedAt) / 1000, beside })
      return
    }
    await pause(250)
  }
}

const kill = async (world: World, process: ServiceProcess, awayMillis: number) => {
  const hit = process.hit("kill -9")
  const diedAt = Date.now()
  await process.end("SIGKILL")
  void measureTakeover(world, diedAt).catch(() => {})
  await pause(awayMillis)
  await process.start()
  hit.end()
}

export const processFaults: ReadonlyArray<Fault> = [
  {
    name: "kill -9",
    weight: 6,
    run: (world) => {
      const process = freeProcess(world)
      const away = world.random.pick([0, 0, lasting(world, 1000, 25_000)])
      return holding(world, [process], async () => {
        await kill(world, process!, away)
        return `${process!.name}, started again after ${seconds(away)}`
      })
    }
  },
  {
    name: "kill -9 of all processes",
    weight: 1,
    run: (world) =>
      holding(world, world.processes, async () => {
        const away = lasting(world, 0, 5000)
        await Promise.all(world.processes.map((process) => kill(world, process, away)))
        return `started again after ${seconds(away)}`
      })
  },
  {
    name: "SIGTERM",
    weight: 4,
    run: (world) => {
      const process = freeProcess(world)
      const hurries = world.random.chance(0.3)
      return holding(world, [process], async () => {
        // A second signal cuts off what is running
        const hit = hurries ? process!.hit("second SIGTERM") : undefined
        const ending = process!.end("SIGTERM")
        if (hurries) {
          await pause(lasting(world, 100, 2000))
          process!.signal("SIGTERM")
        }
        const took = await ending
        await process!.start()
        hit?.end()
        return `${process!.name}, ended after ${seconds(took)}${hurries ? ", signalled twice" : ""}`
      })
    }
  },
  {
    name: "rolling restart",
    weight: 1,
    run: (world) =>
      holding(world, world.processes, async () => {
        for (const process of world.processes) {
          await process.end("SIGTERM")
          await process.start()
        }
        return "all processes, one after the other"
      })
  },
  {
    name: "SIGSTOP",
    weight: 3,
    run: (world) => {
      const process = freeProcess(world)
      const millis = world.random.pick([lasting(world, 500, 9000), lasting(world, 9000, 40_000)])
      return holding(world, [process], async () => {
        const hit = process!.hit("SIGSTOP")
        process!.signal("SIGSTOP")
        await pause(millis)
        process!.signal("SIGCONT")
        // Its running work is overdue
        await pause(3000)
        hit.end()
        return `${process!.name} for ${seconds(millis)}`
      })
    }
  },
  {
    name: "clock jump",
    weight: 2,
    run: (world) => {
      const process = freeProcess(world)
      return holding(world, [process], async () => {
        // Every second signal undoes the previous one
        process!.signal("SIGUSR2")
        const millis = lasting(world, 3000, 25_000)
        await pause(millis)
        process!.signal("SIGUSR2")
        return `${process!.name} by ${process!.env["CLOCK_JUMPS"]?.split(",")[0]} ms for ${seconds(millis)}`
      })
    }
  }
]

/**
 * All processes start as the old release. This one becomes the new release, whose start migrates the store while the
 * others run.
 */
export const upgrade = async (world: World, root: string): Promise<string> => {
  // From now on only the new release is started, because an old one refuses a newer schema
  for (const process of world.processes) process.root = root
  for (const process of world.processes) {
    while (world.inHand.has(process)) await pause(200)
    await holding(world, [process], async () => {
      await process.end("SIGTERM")
      await process.start()
      return ""
    })
    await pause(lasting(world, 10_000, 25_000))
  }
  return "one process after the other"
}
