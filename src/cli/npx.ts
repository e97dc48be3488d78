#!/usr/bin/env node
/** What `npx generation-gateway` runs: with words the commands of `gateway`, without any the service. */
await(process.argv.length > 2 ? import("./gateway.ts") : import("../main.ts"))
