import { load } from "./cli/LoadingSignals.ts"

await load(async () => {
  const [{ runMain }, { service, teardown }] = await Promise.all([
    import("@effect/platform-node/NodeRuntime"),
    import("./cli/Service.ts")
  ])
  runMain(service, { disableErrorReporting: true, teardown })
})
