import type { Weather } from "./network.ts"
import { pause } from "./processes.ts"
import type { Mood } from "./receivers.ts"
import { jobVendors } from "./vendors.ts"
import type { Mood as VendorMood } from "./vendors.ts"
import { freeProcess, holding, lasting } from "./world.ts"
import type { Fault, World } from "./world.ts"

const seconds = (millis: number) => `${(millis / 1000).toFixed(1)} s`

const weathers: ReadonlyArray<Weather> = [
  "swallows requests",
  "swallows responses",
  "swallows all",
  "refuses"
]

const cut = async (world: World, proxy: { weather: Weather; reset: () => void }, most: number) => {
  const { random } = world
  const weather = random.pick(weathers)
  const millis = lasting(world, 1000, most)
  proxy.weather = weather
  if (weather === "refuses") proxy.reset()
  await pause(millis)
  proxy.weather = "passes"
  // Otherwise the cut connection stays silent until one side gives up
  const isReset = random.chance(0.5)
  if (isReset) proxy.reset()
  return `${weather} for ${seconds(millis)}${isReset ? ", then resets" : ""}`
}

export const outsideFaults: ReadonlyArray<Fault> = [
  {
    name: "Postgres: immediate restart",
    weight: 3,
    run: (world) =>
      holding(world, [world.postgres], async () => {
        const away = world.random.pick([0, 0, lasting(world, 500, 12_000)])
        await world.postgres.restart("SIGQUIT", away)
        return `away for ${seconds(away)}`
      })
  },
  {
    name: "Postgres: fast restart",
    weight: 1,
    run: (world) =>
      holding(world, [world.postgres], async () => {
        await world.postgres.restart("SIGINT")
        return "all connections ended"
      })
  },
  {
    name: "Postgres: backends terminated",
    weight: 3,
    run: (world) =>
      holding(world, [world.postgres], async () => {
        const share = world.random.pick([0.3, 0.7, 1])
        const rows = await world.postgres.query(
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
           WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND random() <= $1`,
          [share]
        )
        return `${rows.length} of them`
      })
  },
  {
    name: "vendor in a mood",
    weight: 5,
    run: (world) => {
      const name = world.random.pick(jobVendors)
      const mood = world.random.pick<VendorMood>(["refuses", "breaks", "breaks", "slow", "silent"])
      return holding(world, [name], async () => {
        const millis = lasting(world, 3000, 25_000)
        world.vendors.moods.set(name, mood)
        await pause(millis)
        world.vendors.moods.set(name, "well")
        return `${name} ${mood} for ${seconds(millis)}`
      })
    }
  },
  {
    name: "jobs fail",
    weight: 1,
    run: (world) => {
      const name = world.random.pick(jobVendors)
      const ending = world.random.pick(["failed", "content", "partial"] as const)
      return holding(world, [`${name} ending`], async () => {
        world.vendors.upstreams[name].ending = ending
        await pause(lasting(world, 3000, 15_000))
        world.vendors.upstreams[name].ending = "done"
        return `${name}: ${ending}`
      })
    }
  },
  {
    name: "vendor of calls in a mood",
    weight: 2,
    run: (world) =>
      holding(world, ["calls"], async () => {
        const mood = world.random.pick(["refuses", "breaks", "slow"] as const)
        const millis = lasting(world, 3000, 15_000)
        world.vendors.calls.mood = mood
        await pause(millis)
        world.vendors.calls.mood = "well"
        return `${mood} for ${seconds(millis)}`
      })
  },
  {
    name: "receiver in a mood",
    weight: 4,
    run: (world) => {
      const hook = world.random.pick(world.hooks)
      const mood = world.random.pick<Mood>(["fails", "hangs", "slow"])
      return holding(world, [hook], async () => {
        const millis = lasting(world, 3000, 20_000)
        world.receivers.moods.set(hook, mood)
        await pause(millis)
        world.receivers.moods.set(hook, "well")
        return `${hook} ${mood} for ${seconds(millis)}`
      })
    }
  },
  {
    name: "network cut between a process and Postgres",
    weight: 3,
    run: (world) => {
      const process = freeProcess(world)
      return holding(world, [process], async () => {
        const hit = process!.hit("network cut")
        const what = await cut(world, world.databaseProxies.get(process!.name)!, 35_000)
        await pause(3000)
        hit.end()
        return `${process!.name}: ${what}`
      })
    }
  },
  {
    name: "network cut between the service and a vendor",
    weight: 3,
    run: (world) => {
      const name = world.random.pick([...jobVendors, "calls"])
      return holding(world, [`${name} network`], async () => {
        const what = await cut(world, world.vendors.proxies.get(name)!, 20_000)
        return `${name}: ${what}`
      })
    }
  },
  {
    name: "full disk",
    weight: 2,
    run: (world) =>
      holding(world, [world.media.disk], async () => {
        const millis = lasting(world, 2000, 20_000)
        await world.media.disk!.fill()
        await pause(millis)
        await world.media.disk!.free()
        return `media, for ${seconds(millis)}`
      })
  },
  {
    name: "read-only disk",
    weight: 1,
    run: (world) =>
      holding(world, [world.media.disk], async () => {
        const millis = lasting(world, 2000, 15_000)
        await world.media.disk!.setReadOnly(true)
        await pause(millis)
        await world.media.disk!.setReadOnly(false)
        return `media, for ${seconds(millis)}`
      })
  },
  {
    name: "bucket away",
    weight: 3,
    run: (world) =>
      holding(world, [world.media.proxy], async () => cut(world, world.media.proxy!, 20_000))
  },
  {
    name: "PgBouncer restart",
    weight: 2,
    run: (world) => {
      const { pooler, postgres } = world
      return holding(world, [pooler, pooler === undefined ? undefined : postgres], async () => {
        const away = world.random.pick([0, lasting(world, 500, 8000)])
        await pooler!.restart(away)
        return `away for ${seconds(away)}`
      })
    }
  },
  {
    name: "Postgres: failover to a standby",
    weight: 1,
    run: (world) => {
      const { pooler, postgres } = world
      return holding(world, [postgres.hasStandby ? postgres : undefined], async () => {
        await postgres.failOver()
        if (pooler === undefined) {
          for (const proxy of world.databaseProxies.values()) {
            proxy.target = postgres.port
            proxy.reset()
          }
        } else await pooler.restart(0, postgres.port)
        await pause(lasting(world, 5000, 15_000))
        await postgres.addStandby()
        return "the standby was promoted, and has a new standby"
      })
    }
  }
]
