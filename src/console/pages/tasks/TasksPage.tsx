import { api } from "../../api/client.ts"
import { useLive } from "../../api/live.ts"
import { usePages } from "../../api/pages.ts"
import type { Schemas, SearchOf } from "../../api/schema.ts"
import { isOverAll } from "../../api/session.ts"
import { choiceIn, Filters, filterValues } from "../../components/form/Filters.tsx"
import { PagedTable } from "../../components/list/PagedTable.tsx"
import { searchOfUser, useFiltersOfUser } from "../../components/list/workFilters.ts"
import { PageHeader } from "../../components/PageHeader.tsx"
import { viewedUser } from "../../router/location.ts"
import { filterTexts } from "../../texts/en/filters.ts"
import { taskListTexts } from "../../texts/en/tasks.ts"
import { AllTasks, statuses, statusFilter } from "./AllTasks.tsx"
import { taskColumns } from "./taskColumns.tsx"

type Task = Schemas["TaskListItem"]

/** `/tasks`: a user's tasks or, for the operator, all tasks, with filters in the address. */
export default function TasksPage() {
  return isOverAll() ? <AllTasks /> : <OwnTasks />
}

const OwnTasks = () => {
  const search = {
    ...filterValues(["q"]),
    ...searchOfUser(),
    ...choiceIn("status", statuses)
  }
  const filters = useFiltersOfUser(viewedUser() ?? "", filterTexts.key, statusFilter, {
    name: "q",
    label: taskListTexts.search,
    kind: "search"
  })
  const pages = usePages("tasks", search, (page) =>
    api.GET("/manage/v1/tasks", { query: { ...search, ...page } })
  )
  useLive((event) => {
    if (event.type === "poll") pages.refresh()
    if (event.type === "task") pages.take(event.data, matches(event.data, search))
  })
  return (
    <>
      <PageHeader />
      <Filters filters={filters} />
      <PagedTable words={taskListTexts} search={search} columns={taskColumns} pages={pages} />
    </>
  )
}

/** The filters that can be checked on a new task without the gateway. */
const matches = (task: Task, search: SearchOf<"/manage/v1/tasks">): boolean =>
  search.q === undefined &&
  (search.status === undefined || search.status === task.status) &&
  (search.model === undefined || search.model === task.model) &&
  (search.vendor === undefined || search.vendor === task.vendor)
