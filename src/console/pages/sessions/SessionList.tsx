import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import { usePages } from "../../api/pages.ts"
import { Confirm } from "../../components/form/DialogForm.tsx"
import { PagedTable } from "../../components/list/PagedTable.tsx"
import { operatorTexts } from "../../texts/en/operator.ts"
import { revokeColumn, sessionColumns } from "./sessionColumns.tsx"
import type { Session } from "./sessionColumns.tsx"

const words = operatorTexts.sessions

interface Props {
  /** Absent: the signed-in user. */
  readonly user?: string | undefined
  readonly isReadOnly: boolean
  /** A changed number reloads the list. */
  readonly round?: number
}

/** The open sessions, each with a button to revoke it. */
export const SessionList = ({ isReadOnly, round = 0, user }: Props) => {
  const of = user === undefined ? {} : { user_id: user }
  const sessions = usePages("sessions", [user, round], (page) =>
    api.GET("/manage/v1/sessions", { query: { ...page, ...of } })
  )
  const [asked, setAsked] = useState<Session | undefined>(undefined)
  return (
    <>
      <PagedTable
        words={words}
        columns={isReadOnly ? sessionColumns : [...sessionColumns, revokeColumn(setAsked)]}
        pages={sessions}
      />
      {asked !== undefined && (
        <Confirm
          title={words.revokeTitle}
          detail={words.revokeDetail}
          action={words.revoke}
          isDangerous
          onSubmit={async () => {
            await api.DELETE("/manage/v1/sessions/{id}", { path: { id: asked.id } })
            sessions.reload()
          }}
          onClose={() => setAsked(undefined)}
        />
      )}
    </>
  )
}
