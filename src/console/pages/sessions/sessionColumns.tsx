import type { Schemas } from "../../api/schema.ts"
import type { Column } from "../../components/list/PagedTable.tsx"
import { Ago } from "../../components/Values.tsx"
import { texts } from "../../texts/en.ts"
import { operatorTexts } from "../../texts/en/operator.ts"

export type Session = Schemas["Session"]

const words = operatorTexts.sessions

export const sessionColumns: ReadonlyArray<Column<Session>> = [
  {
    title: words.method,
    isPlain: true,
    cell: ({ current, method }) => (
      <>
        {words.methods[method]}
        {current && <span class="tagged">{words.current}</span>}
      </>
    )
  },
  {
    title: words.address,
    isPlain: true,
    cell: ({ address }) => <code>{address ?? words.unknown}</code>
  },
  { title: words.seen, isNumber: true, cell: ({ last_seen_at: at }) => <Ago at={at} /> },
  { title: words.opened, isNumber: true, cell: ({ created_at: at }) => <Ago at={at} /> },
  { title: words.ends, isNumber: true, cell: ({ expires_at: at }) => <Ago at={at} /> }
]

/** The current session cannot be revoked here; signing out ends it. */
export const revokeColumn = (ask: (session: Session) => void): Column<Session> => ({
  title: texts.actions,
  isEnd: true,
  cell: (session) =>
    session.current ? null : (
      <button
        type="button"
        class="small danger"
        aria-label={words.revokeOf(words.methods[session.method])}
        onClick={() => ask(session)}
      >
        {words.revoke}
      </button>
    )
})
