import type { testApp } from '../app.js'
import { sign } from '../token.js'

/**
 * Inserts rows beside those that testApp has created. Each sequence of requests begins with all of
 * them. The inserted profiles and users have ids from 2 on, and the inserted modules from 5 on.
 */
const ROWS = `
  insert into perfil ("strNombrePerfil")
  values ('LIMITADO'), ('FUERTE'), ('VACÍO'), ('%_\\'), ('"'), ('\u202eÑ😀'), ('SIN USUARIOS');
  insert into modulo ("strNombreModulo") values ('__PROTO__'), ('%_\\'), ('"'), ('\u202eÑ😀');
  insert into permisos_perfil ("idPerfil", "idModulo", "bitAgregar", "bitEditar", "bitConsulta",
    "bitEliminar", "bitDetalle")
  select perfil.id, modulo.id, true, true, true, modulo.id <> 3, perfil.id = 3
  from perfil, modulo
  where perfil.id in (2, 3) and modulo.id < 6;
  insert into usuario ("strNombreUsuario", "strCorreo", "idPerfil", "strPwd", "idEstadoUsuario")
  select nombre, nombre || '@ejemplo.com', perfil, "strPwd", nombre <> 'inactivo'
  from usuario, (values ('limitado', 2), ('inactivo', 2), ('fuerte', 3), ('vacío', 4), ('raro', 5),
    ('otro', 6), ('más', 7)) as nuevos (nombre, perfil);
`

/**
 * Keeps a copy of each table, and restores the rows from it. Rows that requests insert get ids from
 * 100 on.
 */
const SETUP = `
  create schema prueba;
  do $$
  declare
    v_tabla name;
  begin
    for v_tabla in select tablename from pg_tables where schemaname = 'public' loop
      execute format('create table prueba.%I as table public.%1$I', v_tabla);
    end loop;
  end
  $$;
  -- In the role of a replica, no trigger fires and no foreign key is checked.
  create function prueba.restaurar() returns void language plpgsql
  set session_replication_role = replica as $$
  declare
    v_tabla name;
  begin
    for v_tabla in select tablename from pg_tables where schemaname = 'public' loop
      execute format('delete from public.%I', v_tabla);
      execute format('insert into public.%I overriding system value table prueba.%1$I', v_tabla);
    end loop;
    perform setval(format('%I.%I', schemaname, sequencename)::regclass, 99)
    from pg_sequences where schemaname = 'public';
  end
  $$;
`

/**
 * Inserts the rows. The administrator, who exists already, becomes the user in the document's
 * example of a login. `restore` restores all rows; `changes` returns a text that every change
 * changes: the number of the audit's rows, and what the audit leaves out.
 */
export async function fillWorld({ pool, sql, passwords }: Awaited<ReturnType<typeof testApp>>) {
  await pool`update usuario set "strNombreUsuario" = 'admin', "strPwd" = ${await passwords.hash('llavero-admin')}`
  // The new password has ended the sessions, but the tokens below have no `ver`.
  await pool`update usuario set "versionSesion" = 0`
  await sql.unsafe(ROWS + SETUP)
  return {
    restore: async () => {
      await pool`select prueba.restaurar()`
    },
    changes: async () => {
      const [row] = await pool`
        select concat(
          (select count(*) from auditoria),
          (select string_agg("versionPermisos"::text || "numPermisos", ',' order by id) from perfil)
        ) as text
      `
      return row?.text as string
    },
  }
}

const soon = Math.floor(Date.now() / 1000) + 3600
const limited = { id: 2, idPerfil: 2, nombre: 'limitado', exp: soon }

/** The token that each caller sends; undefined for a caller without one. */
export const TOKENS = {
  administrator: sign({ id: 1, idPerfil: 1, nombre: 'admin', exp: soon }),
  limited: sign(limited),
  ended: sign({ ...limited, ver: 7 }),
  'of another shape': sign({ ...limited, id: '1 or true', ver: -1 }),
  garbage: 'e30.e30.%00',
  none: undefined,
}
/** The callers whose token belongs to a session. */
export const SESSIONS: Caller[] = ['administrator', 'limited']
export type Caller = keyof typeof TOKENS
