import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import { pageAfter } from "../../api/lists.ts"
import { usePages } from "../../api/pages.ts"
import { Confirm } from "../../components/form/Dialog.tsx"
import { PagedTable } from "../../components/list/PagedTable.tsx"
import { Empty } from "../../components/States.tsx"
import { operatorTexts } from "../../texts/en/operator.ts"
import { revokeColumn, sessionColumns } from "./sessionColumns.tsx"
import type { Session } from "./sessionColumns.tsx"

const words = operatorTexts.sessions
const pageSize = 50

interface Props {
  /** Absent: the signed-in user. */
  readonly user?: string | undefined
  readonly isReadOnly: boolean
  /** A changed number reloads the list. */
  readonly round?: number
}

/** The open sessions, each with a button to revoke it. */
export const SessionList = ({ isReadOnly, round = 0, user }: Props) => {
  const sessions = usePages<Session>(
    "sessions",
    `${user ?? ""} ${round}`,
    (cursor) =>
      api.GET("/manage/v1/sessions", {
        query: {
          ...pageAfter(pageSize, cursor),
          ...(user === undefined ? {} : { user_id: user })
        }
      }),
    ({ id }) => id
  )
  const [asked, setAsked] = useState<Session | undefined>(undefined)
  return (
    <>
      <PagedTable
        caption={words.caption}
        columns={isReadOnly ? sessionColumns : [...sessionColumns, revokeColumn(setAsked)]}
        pages={sessions}
        idOf={({ id }) => id}
        empty={<Empty title={words.empty} />}
      />
      {asked !== undefined && (
        <Confirm
          title={words.revokeTitle}
          detail={words.revokeDetail}
          action={words.revoke}
          isDangerous
          onConfirm={async () => {
            await api.DELETE("/manage/v1/sessions/{id}", { path: { id: asked.id } })
            sessions.reload()
          }}
          onClose={() => setAsked(undefined)}
        />
      )}
    </>
  )
}
