import { api } from "../../api/client.ts"
import { useResource } from "../../api/resource.ts"
import { taskTitle } from "../../format/prompt.ts"
import { viewedUser } from "../../router/location.ts"
import { callName } from "../calls/tokens.tsx"

export interface Work {
  readonly path: string
  readonly title: string
}

const query = { limit: 100 }

/** The newest tasks and calls by id, reloaded whenever `newest` changes, because ledger entries contain only ids. */
export const useWork = (newest: string | undefined): ReadonlyMap<string, Work> => {
  const work = useResource(`${viewedUser()} ${newest}`, async () => {
    const named = new Map<string, Work>()
    if (newest === undefined) return named
    const [tasks, calls] = await Promise.all([
      api.GET("/manage/v1/tasks", { query }),
      api.GET("/manage/v1/calls", { query })
    ])
    for (const it of tasks.data) named.set(it.id, { path: `/tasks/${it.id}`, title: taskTitle(it) })
    for (const it of calls.data) named.set(it.id, { path: `/calls/${it.id}`, title: callName(it) })
    return named
  })
  return work.data ?? new Map<string, Work>()
}
