import { api } from "../../api/client.ts"
import { useLive } from "../../api/live.ts"
import { usePages } from "../../api/pages.ts"
import { isOverAll } from "../../api/session.ts"
import { choiceIn, Filters } from "../../components/form/Filters.tsx"
import { PagedTable } from "../../components/list/PagedTable.tsx"
import { searchOfUser, useFiltersOfUser } from "../../components/list/workFilters.ts"
import { PageHeader } from "../../components/PageHeader.tsx"
import { viewedUser } from "../../router/location.ts"
import { texts } from "../../texts/en.ts"
import { callTexts } from "../../texts/en/calls.ts"
import { AllCalls, outcomeFilter, outcomes } from "./AllCalls.tsx"
import { callColumns } from "./callColumns.tsx"
import { KeepCalls, useKeepsCalls } from "./KeepCalls.tsx"

const words = callTexts
/** `/calls`: receipts of a user's calls or, for the operator, of all calls, with filters in the address. */
export default function CallsPage() {
  return isOverAll() ? <AllCalls /> : <OwnCalls />
}

const OwnCalls = () => {
  const settings = useKeepsCalls()
  const search = { ...searchOfUser(), ...choiceIn("outcome", outcomes) }
  const filters = useFiltersOfUser(viewedUser() ?? "", words.key, outcomeFilter)
  const pages = usePages("calls", search, (page) =>
    api.GET("/manage/v1/calls", { query: { ...search, ...page } })
  )
  useLive(({ type }) => {
    if (type === "poll") pages.refresh()
  })
  return (
    <>
      <PageHeader about={words.about}>
        {settings.data !== undefined && (
          <KeepCalls
            isKept={settings.data.keep_calls}
            onChanged={(kept) => settings.set({ keep_calls: kept })}
          />
        )}
        <button type="button" onClick={pages.reload}>
          {texts.refresh}
        </button>
      </PageHeader>
      <Filters filters={filters} />
      <PagedTable words={words} search={search} columns={callColumns} pages={pages} />
    </>
  )
}
