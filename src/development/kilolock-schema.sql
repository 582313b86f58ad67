-- Kilolock's tables and views, as far as this project reads or writes them: what a fully migrated Kilolock database holds
-- under the same names. For databases of our own only; on a real one `public` belongs to Kilolock.

-- Tenants, the people behind them, and their environments

create table portal_accounts (
  id uuid not null default gen_random_uuid(),
  email text not null,
  company text not null default '',
  plan text not null default 'starter',
  password_salt text not null,
  password_hash text not null,
  password_login_enabled boolean not null default true,
  auth_source text not null default 'password',
  oidc_provider text not null default '',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint portal_accounts_pkey primary key (id),
  constraint portal_accounts_email_key unique (email),
  constraint portal_accounts_auth_source_check check (auth_source in ('password', 'oidc'))
);

create table tenants (
  id uuid not null default gen_random_uuid(),
  workspace_id text not null default 'ws_' || substr(replace(gen_random_uuid()::text, '-', ''), 1, 12),
  slug text not null,
  name text not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  lifecycle_status text not null default 'active',
  lifecycle_changed_at timestamptz,
  lifecycle_changed_by text not null default '',
  lifecycle_reason text not null default '',
  kind text not null default 'organization',
  personal_owner_account_id uuid,
  billing_plan text not null default 'starter',
  max_environments integer not null default 0,
  max_state_resources integer not null default 0,
  max_environment_resources integer not null default 0,
  stripe_customer_id text,
  stripe_subscription_id text,
  stripe_subscription_status text,
  stripe_price_id text,
  stripe_current_period_end timestamptz,
  stripe_updated_at timestamptz,
  constraint tenants_pkey primary key (id),
  constraint tenants_slug_key unique (slug),
  constraint tenants_workspace_id_key unique (workspace_id),
  constraint tenants_kind_valid check (kind in ('organization', 'personal')),
  constraint tenants_lifecycle_status_check check (lifecycle_status in ('active', 'suspended', 'archived')),
  constraint tenants_max_environments_positive check (max_environments >= 0),
  constraint tenants_max_state_resources_positive check (max_state_resources >= 0),
  constraint tenants_max_environment_resources_positive check (max_environment_resources >= 0),
  constraint tenants_personal_owner_account_id_fkey
    foreign key (personal_owner_account_id) references portal_accounts (id) on delete set null
);
create unique index tenants_personal_owner_account_uq on tenants (personal_owner_account_id)
  where personal_owner_account_id is not null;
create unique index tenants_stripe_customer_id_uq on tenants (stripe_customer_id)
  where stripe_customer_id is not null;
create unique index tenants_stripe_subscription_id_uq on tenants (stripe_subscription_id)
  where stripe_subscription_id is not null;

create table environments (
  id uuid not null default gen_random_uuid(),
  tenant_id uuid not null,
  env_public_id text not null default 'env_' || substr(replace(gen_random_uuid()::text, '-', ''), 1, 12),
  slug text not null,
  tier text not null default 'shared_host',
  status text not null default 'ready',
  database_name text,
  database_dsn text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  host_connection_name text,
  source_database_dsn text,
  provision_error text,
  provision_started_at timestamptz,
  provision_finished_at timestamptz,
  database_instance_key text not null default 'shared',
  last_migration_version integer,
  last_migration_at timestamptz,
  last_migration_error text,
  lifecycle_status text not null default 'active',
  lifecycle_changed_at timestamptz,
  lifecycle_changed_by text not null default '',
  lifecycle_reason text not null default '',
  state_lock_default_mode text not null default 'auto',
  constraint environments_pkey primary key (id),
  constraint environments_env_public_id_key unique (env_public_id),
  constraint environments_tenant_slug_key unique (tenant_id, slug),
  constraint environments_tier_check check (tier in ('shared_host', 'dedicated_host')),
  constraint environments_status_check check (status in ('provisioning', 'ready', 'failed')),
  constraint environments_lifecycle_status_check check (lifecycle_status in ('active', 'suspended', 'archived')),
  constraint environments_state_lock_default_mode_check
    check (state_lock_default_mode in ('auto', 'vanilla', 'kilolock')),
  constraint environments_tenant_id_fkey foreign key (tenant_id) references tenants (id) on delete cascade
);

-- A state and its history

create table states (
  id uuid not null default gen_random_uuid(),
  name text not null,
  lineage uuid,
  current_version_id uuid,
  lifecycle_status text not null default 'active',
  lifecycle_changed_at timestamptz,
  lifecycle_changed_by text not null default '',
  lifecycle_reason text not null default '',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  tenant_id uuid not null default '00000000-0000-0000-0000-000000000000',
  exclusive_locks boolean not null default false,
  coexistence_mode text not null default 'warn',
  constraint states_pkey primary key (id),
  constraint states_tenant_name_key unique (tenant_id, name),
  constraint states_lifecycle_status_check check (lifecycle_status in ('active', 'suspended', 'archived')),
  constraint states_coexistence_mode_check check (coexistence_mode in ('warn', 'strict')),
  constraint states_tenant_id_fkey foreign key (tenant_id) references tenants (id)
);
create index states_tenant_idx on states (tenant_id);

create table state_versions (
  id uuid not null default gen_random_uuid(),
  state_id uuid not null,
  serial bigint not null,
  terraform_version text,
  raw_state jsonb not null,
  source text not null default 'unknown',
  created_at timestamptz not null default now(),
  created_by text,
  tenant_id uuid not null default '00000000-0000-0000-0000-000000000000',
  constraint state_versions_pkey primary key (id),
  constraint state_versions_state_id_serial_key unique (state_id, serial),
  constraint state_versions_state_id_fkey foreign key (state_id) references states (id) on delete cascade,
  constraint state_versions_tenant_id_fkey foreign key (tenant_id) references tenants (id)
);
create index state_versions_state_serial_desc_idx on state_versions (state_id, serial desc);
create index state_versions_tenant_idx on state_versions (tenant_id);

-- The two tables point at each other, so a state and its versions become visible together or not at all.
alter table states add constraint states_current_version_fk
  foreign key (current_version_id) references state_versions (id) deferrable initially deferred;

create table state_version_tags (
  id uuid not null default gen_random_uuid(),
  tenant_id uuid not null default '00000000-0000-0000-0000-000000000000',
  state_id uuid not null,
  state_version_id uuid not null,
  tag text not null,
  description text,
  actor text not null default 'unknown',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint state_version_tags_pkey primary key (id),
  constraint state_version_tags_no_reserved_names
    check (tag !~ '^@' and tag !~ '^[0-9]+$' and tag <> 'current' and tag <> '' and length(tag) <= 64),
  constraint state_version_tags_state_id_fkey foreign key (state_id) references states (id) on delete cascade,
  constraint state_version_tags_state_version_id_fkey
    foreign key (state_version_id) references state_versions (id) on delete restrict,
  constraint state_version_tags_tenant_id_fkey foreign key (tenant_id) references tenants (id)
);
create unique index state_version_tags_state_tag_uidx on state_version_tags (tenant_id, state_id, tag);
create index state_version_tags_version_idx on state_version_tags (state_version_id);
create index state_version_tags_tenant_idx on state_version_tags (tenant_id);

create table resources (
  id uuid not null default gen_random_uuid(),
  state_id uuid not null,
  address text not null,
  mode text not null,
  type text not null,
  name text not null,
  provider text not null,
  module_path text not null default '',
  index_kind text not null default 'none',
  index_value text,
  attributes jsonb not null default '{}',
  sensitive_paths jsonb not null default '[]',
  dependencies_raw jsonb not null default '[]',
  attributes_hash text not null,
  create_serial bigint not null,
  delete_serial bigint,
  created_at timestamptz not null default now(),
  tenant_id uuid not null default '00000000-0000-0000-0000-000000000000',
  schema_version integer not null default 0,
  constraint resources_pkey primary key (id),
  constraint resources_state_id_address_create_serial_key unique (state_id, address, create_serial),
  constraint resources_check check (delete_serial is null or delete_serial > create_serial),
  constraint resources_mode_check check (mode in ('managed', 'data')),
  constraint resources_index_kind_check check (index_kind in ('none', 'int', 'string')),
  constraint resources_state_id_fkey foreign key (state_id) references states (id) on delete cascade,
  constraint resources_tenant_id_fkey foreign key (tenant_id) references tenants (id)
);
create index resources_state_id_idx on resources (state_id);
create index resources_state_address_idx on resources (state_id, address);
create index resources_state_open_idx on resources (state_id) where delete_serial is null;
create index resources_state_open_address_idx on resources (state_id, address) where delete_serial is null;
create index resources_closed_at_idx on resources (state_id, address, delete_serial) where delete_serial is not null;
create index resources_type_idx on resources (type);
create index resources_attributes_gin_idx on resources using gin (attributes);
create index resources_tenant_state_idx on resources (tenant_id, state_id);

create table outputs (
  id uuid not null default gen_random_uuid(),
  state_version_id uuid not null,
  name text not null,
  value jsonb not null,
  value_type jsonb not null,
  sensitive boolean not null default false,
  tenant_id uuid not null default '00000000-0000-0000-0000-000000000000',
  constraint outputs_pkey primary key (id),
  constraint outputs_state_version_id_name_key unique (state_version_id, name),
  constraint outputs_state_version_id_fkey
    foreign key (state_version_id) references state_versions (id) on delete cascade,
  constraint outputs_tenant_id_fkey foreign key (tenant_id) references tenants (id)
);

create table events (
  id uuid not null default gen_random_uuid(),
  kind text not null,
  state_id uuid,
  state_version_id uuid,
  actor text,
  payload jsonb not null default '{}',
  created_at timestamptz not null default now(),
  tenant_id uuid not null default '00000000-0000-0000-0000-000000000000',
  constraint events_pkey primary key (id),
  constraint events_state_id_fkey foreign key (state_id) references states (id) on delete set null,
  constraint events_state_version_id_fkey
    foreign key (state_version_id) references state_versions (id) on delete set null,
  constraint events_tenant_id_fkey foreign key (tenant_id) references tenants (id)
);
create index events_state_created_desc_idx on events (state_id, created_at desc);
create index events_kind_idx on events (kind);
create index events_tenant_kind_created_desc_idx on events (tenant_id, kind, created_at desc);

-- Who is at work on a state

create table state_locks (
  state_id uuid not null,
  lock_id text not null,
  info text,
  who text,
  version text,
  created text,
  path text,
  acquired_at timestamptz not null default now(),
  expires_at timestamptz,
  tenant_id uuid not null default '00000000-0000-0000-0000-000000000000',
  source_serial bigint,
  constraint state_locks_pkey primary key (state_id, lock_id),
  constraint state_locks_state_id_fkey foreign key (state_id) references states (id) on delete cascade,
  constraint state_locks_tenant_id_fkey foreign key (tenant_id) references tenants (id)
);

create table apply_runs (
  id uuid not null default gen_random_uuid(),
  state_id uuid not null,
  from_version_id uuid not null,
  to_version_id uuid,
  source_serial bigint not null,
  committed_serial bigint,
  actor text,
  started_at timestamptz not null default now(),
  finished_at timestamptz,
  resources_planned integer,
  resources_applied integer,
  resources_failed integer,
  status text not null default 'running',
  error_summary text,
  info jsonb not null default '{}',
  created_at timestamptz not null default now(),
  tenant_id uuid not null default '00000000-0000-0000-0000-000000000000',
  constraint apply_runs_pkey primary key (id),
  constraint apply_runs_status_check check (status in ('running', 'committed', 'failed', 'aborted')),
  constraint apply_runs_running_has_no_finish check ((status = 'running') = (finished_at is null)),
  constraint apply_runs_committed_serial_only_on_commit check (committed_serial is null or status = 'committed'),
  constraint apply_runs_state_id_fkey foreign key (state_id) references states (id) on delete cascade,
  constraint apply_runs_from_version_id_fkey foreign key (from_version_id) references state_versions (id),
  constraint apply_runs_to_version_id_fkey foreign key (to_version_id) references state_versions (id),
  constraint apply_runs_tenant_id_fkey foreign key (tenant_id) references tenants (id)
);

create table refresh_runs (
  id uuid not null default gen_random_uuid(),
  state_id uuid not null,
  from_version_id uuid not null,
  to_version_id uuid,
  started_at timestamptz not null default now(),
  finished_at timestamptz,
  resources_checked integer,
  resources_changed integer,
  resources_failed integer,
  status text not null default 'running',
  error_summary text,
  actor text,
  created_at timestamptz not null default now(),
  tenant_id uuid not null default '00000000-0000-0000-0000-000000000000',
  constraint refresh_runs_pkey primary key (id),
  constraint refresh_runs_status_check check (status in ('running', 'succeeded', 'failed', 'cancelled')),
  constraint refresh_runs_running_has_no_finish check ((status = 'running') = (finished_at is null)),
  constraint refresh_runs_state_id_fkey foreign key (state_id) references states (id) on delete cascade,
  constraint refresh_runs_from_version_id_fkey foreign key (from_version_id) references state_versions (id),
  constraint refresh_runs_to_version_id_fkey foreign key (to_version_id) references state_versions (id),
  constraint refresh_runs_tenant_id_fkey foreign key (tenant_id) references tenants (id)
);

create table resource_reservations (
  id uuid not null default gen_random_uuid(),
  state_id uuid not null,
  apply_id uuid not null,
  address_glob text not null,
  mode text not null,
  holder text not null,
  info jsonb not null default '{}',
  acquired_at timestamptz not null default now(),
  expires_at timestamptz not null,
  tenant_id uuid not null default '00000000-0000-0000-0000-000000000000',
  constraint resource_reservations_pkey primary key (id),
  constraint res_no_self_overlap unique (state_id, address_glob, holder, apply_id),
  constraint resource_reservations_mode_check check (mode in ('read', 'write')),
  constraint resource_reservations_state_id_fkey foreign key (state_id) references states (id) on delete cascade,
  constraint resource_reservations_apply_id_fkey foreign key (apply_id) references apply_runs (id) on delete cascade,
  constraint resource_reservations_tenant_id_fkey foreign key (tenant_id) references tenants (id)
);

-- Credentials and roles

create table api_tokens (
  id uuid not null default gen_random_uuid(),
  tenant_id uuid not null,
  name text not null,
  token_hash bytea not null,
  token_prefix text not null,
  created_at timestamptz not null default now(),
  revoked_at timestamptz,
  last_used_at timestamptz,
  environment_id uuid not null,
  lifecycle_status text not null default 'active',
  lifecycle_changed_at timestamptz,
  lifecycle_changed_by text not null default '',
  lifecycle_reason text not null default '',
  constraint api_tokens_pkey primary key (id),
  constraint api_tokens_environment_name_key unique (environment_id, name),
  constraint api_tokens_lifecycle_status_check check (lifecycle_status in ('active', 'suspended', 'archived')),
  constraint api_tokens_tenant_id_fkey foreign key (tenant_id) references tenants (id),
  constraint api_tokens_environment_id_fkey foreign key (environment_id) references environments (id)
);
create unique index api_tokens_active_hash_idx on api_tokens (token_hash) where revoked_at is null;

create table portal_personal_access_tokens (
  id uuid not null default gen_random_uuid(),
  account_id uuid not null,
  token_hash bytea not null,
  token_prefix text not null,
  created_at timestamptz not null default now(),
  last_used_at timestamptz,
  revoked_at timestamptz,
  revoked_by text not null default '',
  replaced_by_token_id uuid,
  constraint portal_personal_access_tokens_pkey primary key (id),
  constraint portal_personal_access_tokens_token_hash_key unique (token_hash),
  constraint portal_personal_access_tokens_account_id_fkey
    foreign key (account_id) references portal_accounts (id) on delete cascade,
  constraint portal_personal_access_tokens_replaced_by_token_id_fkey
    foreign key (replaced_by_token_id) references portal_personal_access_tokens (id) on delete set null
);
create unique index portal_personal_access_tokens_active_uq on portal_personal_access_tokens (account_id)
  where revoked_at is null;

create table portal_environment_pat_grants (
  id uuid not null default gen_random_uuid(),
  account_id uuid not null,
  environment_id uuid not null,
  granted_by text not null default '',
  created_at timestamptz not null default now(),
  revoked_at timestamptz,
  revoked_by text not null default '',
  constraint portal_environment_pat_grants_pkey primary key (id),
  constraint portal_environment_pat_grants_account_id_fkey
    foreign key (account_id) references portal_accounts (id) on delete cascade,
  constraint portal_environment_pat_grants_environment_id_fkey
    foreign key (environment_id) references environments (id) on delete cascade
);
create unique index portal_environment_pat_grants_active_uq on portal_environment_pat_grants (account_id, environment_id)
  where revoked_at is null;

create table tenant_memberships (
  id uuid not null default gen_random_uuid(),
  tenant_slug text not null,
  account_id uuid not null,
  role text not null default 'member',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  revoked_at timestamptz,
  revoked_by text not null default '',
  constraint tenant_memberships_pkey primary key (id),
  constraint tenant_memberships_role_check check (role in ('owner', 'tenant_admin', 'billing_admin', 'member')),
  constraint tenant_memberships_tenant_slug_fkey foreign key (tenant_slug) references tenants (slug) on delete cascade,
  constraint tenant_memberships_account_id_fkey
    foreign key (account_id) references portal_accounts (id) on delete cascade
);
create unique index tenant_memberships_active_uq on tenant_memberships (tenant_slug, account_id)
  where revoked_at is null;

create table rbac_roles (
  id uuid not null default gen_random_uuid(),
  key text not null,
  name text not null,
  description text not null default '',
  created_at timestamptz not null default now(),
  constraint rbac_roles_pkey primary key (id),
  constraint rbac_roles_key_key unique (key)
);

create table rbac_permissions (
  id uuid not null default gen_random_uuid(),
  key text not null,
  description text not null default '',
  created_at timestamptz not null default now(),
  constraint rbac_permissions_pkey primary key (id),
  constraint rbac_permissions_key_key unique (key)
);

create table rbac_role_permissions (
  role_id uuid not null,
  permission_id uuid not null,
  created_at timestamptz not null default now(),
  constraint rbac_role_permissions_pkey primary key (role_id, permission_id),
  constraint rbac_role_permissions_role_id_fkey foreign key (role_id) references rbac_roles (id) on delete cascade,
  constraint rbac_role_permissions_permission_id_fkey
    foreign key (permission_id) references rbac_permissions (id) on delete cascade
);

create table rbac_principal_roles (
  id uuid not null default gen_random_uuid(),
  subject_kind text not null,
  subject_id text not null,
  role_id uuid not null,
  scope_kind text not null default 'global',
  scope_ref text not null default '',
  granted_by text not null default '',
  granted_at timestamptz not null default now(),
  revoked_at timestamptz,
  constraint rbac_principal_roles_pkey primary key (id),
  constraint rbac_principal_roles_scope_kind_check check (scope_kind in ('global', 'tenant', 'environment')),
  constraint rbac_principal_roles_role_id_fkey foreign key (role_id) references rbac_roles (id) on delete cascade
);
create unique index rbac_principal_roles_active_uq
  on rbac_principal_roles (subject_kind, subject_id, role_id, scope_kind, scope_ref)
  where revoked_at is null;

-- Views

-- The resources of each state as it stands.
create view current_resources as
  select resource.id, resource.state_id, state.name as state_name, resource.tenant_id, tenant.slug as tenant_slug,
    resource.address, resource.mode, resource.type, resource.name as resource_name, resource.provider,
    resource.module_path, resource.index_kind, resource.index_value, resource.attributes, resource.sensitive_paths,
    resource.dependencies_raw, resource.attributes_hash, resource.create_serial, resource.created_at
  from resources resource
  join states state on state.id = resource.state_id
  join tenants tenant on tenant.id = resource.tenant_id
  where resource.delete_serial is null;

-- A dependency names a resource without its index, and means every instance: "a.b" is a.b, a.b[0] and a.b["x"]. Here
-- between the resources alive in each version.
create view resource_dependencies as
  select distinct version.id as state_version_id, dependent.id as from_resource_id, dependency.id as to_resource_id,
    'unknown' as kind
  from state_versions version
  join resources dependent on dependent.state_id = version.state_id
    and version.serial >= dependent.create_serial
    and (dependent.delete_serial is null or version.serial < dependent.delete_serial)
  cross join jsonb_array_elements_text(dependent.dependencies_raw) named(address)
  join resources dependency on dependency.state_id = version.state_id
    and version.serial >= dependency.create_serial
    and (dependency.delete_serial is null or version.serial < dependency.delete_serial)
    and (dependency.address = named.address or starts_with(dependency.address, named.address || '['))
  where dependency.id <> dependent.id;

-- The same between the resources of each state as it stands.
create view current_resource_dependencies as
  select distinct dependent.id as from_resource_id, dependency.id as to_resource_id, 'unknown' as kind
  from resources dependent
  cross join jsonb_array_elements_text(dependent.dependencies_raw) named(address)
  join resources dependency on dependency.state_id = dependent.state_id
    and (dependency.address = named.address or starts_with(dependency.address, named.address || '['))
  where dependent.delete_serial is null
    and dependency.delete_serial is null
    and dependency.id <> dependent.id;

-- What a refresh found changed and no apply has dealt with since: it closed the span before and opened this one.
create view current_resource_drift as
  select resource.id as resource_id, resource.state_id, state.name as state_name, resource.address, resource.type,
    resource.mode, resource.module_path, resource.attributes as current_attributes,
    before.attributes as previous_attributes, resource.create_serial as detected_at_serial,
    version.id as detected_in_version_id, version.created_at as detected_at, run.id as refresh_run_id
  from resources resource
  join states state on state.id = resource.state_id
  join state_versions version on version.state_id = resource.state_id
    and version.serial = resource.create_serial
    and version.source = 'refresh'
  cross join lateral (
    select closed.attributes
    from resources closed
    where closed.state_id = resource.state_id
      and closed.address = resource.address
      and closed.delete_serial = resource.create_serial
    order by closed.create_serial desc
    limit 1
  ) before
  left join refresh_runs run on run.to_version_id = version.id
  where resource.delete_serial is null
    and not exists (
      select from state_versions applied
      where applied.state_id = resource.state_id
        and applied.serial > resource.create_serial
        and applied.source = 'apply'
    );

-- The self-hosted tenant, the default of every tenant_id above, and its environment

insert into tenants (id, workspace_id, slug, name)
  values ('00000000-0000-0000-0000-000000000000', 'ws_000000000000', 'self-hosted', 'Self-hosted');
insert into environments (tenant_id, env_public_id, slug)
  values ('00000000-0000-0000-0000-000000000000', 'env_000000000000', 'default');
