-- What the service needs of the database of DATABASE_URL, and of those of environments that have their own.
-- As the role that owns Kilolock's tables, which may create roles; as often as wanted: psql -v ON_ERROR_STOP=1 -f rights.sql
-- Then give the role a password: \password state_archive_service

do $$ begin
  create role state_archive_service login;
exception when duplicate_object then null;
end $$;
create schema if not exists state_archive;
-- The queue; the database of DATABASE_URL alone has one.
create schema if not exists state_archive_queue;

grant usage on schema public, state_archive, state_archive_queue to state_archive_service;

grant select, insert on public.tenants to state_archive_service;
grant select on public.environments to state_archive_service;
grant select, insert, update on public.states to state_archive_service;
grant select, insert, update, delete on public.state_versions to state_archive_service;
grant select, insert, delete on public.state_version_tags to state_archive_service;
grant select, insert, update, delete on public.resources to state_archive_service;
grant select, insert on public.outputs to state_archive_service;
grant select, insert, update on public.events to state_archive_service;
grant select on public.state_locks to state_archive_service;
grant select, delete on public.apply_runs, public.refresh_runs, public.resource_reservations to state_archive_service;

-- What Kilolock's own tokens may do (leave out tables that this Kilolock has not).
grant select, update on public.api_tokens, public.portal_personal_access_tokens to state_archive_service;
grant select on public.rbac_permissions, public.rbac_role_permissions, public.rbac_principal_roles,
  public.portal_accounts, public.portal_environment_pat_grants, public.tenant_memberships to state_archive_service;

-- The service's own tables, those of later releases too.
alter default privileges in schema state_archive
  grant select, insert, update, delete on tables to state_archive_service;
alter default privileges in schema state_archive_queue
  grant select, insert, update, delete on tables to state_archive_service;
