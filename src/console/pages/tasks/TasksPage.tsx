import { api } from "../../api/client.ts"
import { useFresh } from "../../api/fresh.ts"
import { useKeys, useModelNames } from "../../api/lists.ts"
import { useLive } from "../../api/live.ts"
import { usePages } from "../../api/pages.ts"
import type { Schemas } from "../../api/schema.ts"
import { isOverAll } from "../../api/session.ts"
import { Filters, filterValues } from "../../components/form/Filters.tsx"
import type { Filter } from "../../components/form/Filters.tsx"
import { PagedTable } from "../../components/list/PagedTable.tsx"
import { PageHeader } from "../../components/PageHeader.tsx"
import { Empty } from "../../components/States.tsx"
import { viewedUser } from "../../router/location.ts"
import { texts } from "../../texts/en.ts"
import { filterTexts } from "../../texts/en/filters.ts"
import { taskListTexts } from "../../texts/en/tasks.ts"
import { AllTasks } from "./AllTasks.tsx"
import { taskColumns } from "./taskColumns.tsx"

type Task = Schemas["TaskListItem"]

const statuses = ["pending", "processing", "completed", "failed"] as const

const useFilters = (user: string): ReadonlyArray<Filter> => {
  const { models, vendors } = useModelNames()
  const keys = useKeys(user)
  return [
    {
      name: "status",
      label: filterTexts.status,
      kind: "segments",
      options: statuses.map((it) => [it, texts.status[it]])
    },
    { name: "q", label: taskListTexts.search, kind: "search" },
    { name: "model", label: filterTexts.model, kind: "choice", options: models },
    { name: "vendor", label: filterTexts.vendor, kind: "choice", options: vendors },
    {
      name: "api_key_id",
      label: filterTexts.key,
      kind: "choice",
      options: [...keys.values()].map(({ id, name }) => [id, name])
    },
    { name: "trace_id", label: filterTexts.traceId, kind: "text" },
    { name: "since", label: filterTexts.since, kind: "time" },
    { name: "until", label: filterTexts.until, kind: "time" },
    { name: "min_cost", label: filterTexts.minCost, kind: "amount" },
    { name: "max_cost", label: filterTexts.maxCost, kind: "amount" }
  ]
}

const names = [
  "q",
  "model",
  "vendor",
  "api_key_id",
  "trace_id",
  "since",
  "until",
  "min_cost",
  "max_cost"
] as const

const pageSize = 50

/** `/tasks`: a user's tasks or, for the operator, all tasks, with filters in the address. */
export default function TasksPage() {
  return isOverAll() ? <AllTasks /> : <OwnTasks />
}

const OwnTasks = () => {
  const user = viewedUser() ?? ""
  const filters = useFilters(user)
  const { status: chosen } = filterValues(["status"])
  const status = statuses.find((it) => it === chosen)
  const search = { ...filterValues(names), ...(status === undefined ? {} : { status }) }
  const key = JSON.stringify([user, search])
  const pages = usePages<Task>(
    "tasks",
    key,
    (cursor) =>
      api.GET("/manage/v1/tasks", {
        query: { ...search, limit: pageSize, ...(cursor === undefined ? {} : { cursor }) }
      }),
    ({ id }) => id
  )
  const fresh = useFresh(key, pages.reload)
  useLive((event) => {
    if (event.type === "poll" && !pages.isLoading && pages.rows.length <= pageSize) pages.reload()
    if (event.type !== "task" || pages.isLoading) return
    const task = event.data
    if (pages.update(task) || !isNewer(task, pages.rows[0]) || !matches(task, search)) return
    fresh.add(task.id)
  })
  const isSearch = Object.keys(search).length > 0
  return (
    <>
      <PageHeader title={taskListTexts.title} />
      <Filters filters={filters} />
      <PagedTable
        caption={taskListTexts.caption}
        columns={taskColumns}
        pages={pages}
        idOf={({ id }) => id}
        fresh={fresh.count}
        onFresh={fresh.show}
        empty={
          isSearch ? (
            <Empty title={taskListTexts.noMatch} />
          ) : (
            <Empty title={taskListTexts.empty}>
              <p>{taskListTexts.emptyDetail}</p>
            </Empty>
          )
        }
      />
    </>
  )
}

const isNewer = (task: Task, first: Task | undefined): boolean =>
  first === undefined || task.created_at > first.created_at

/** The filters that can be checked on a new task without the gateway. */
const matches = (
  task: Task,
  search: {
    readonly q?: string
    readonly status?: string
    readonly model?: string
    readonly vendor?: string
  }
): boolean =>
  search.q === undefined &&
  (search.status === undefined || search.status === task.status) &&
  (search.model === undefined || search.model === task.model) &&
  (search.vendor === undefined || search.vendor === task.vendor)
